// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace frugal::detail {

/// For what is put in order while an error is on its way: that one is the news, and no other.
template <class F>
void quietly(F&& f) {
  try {
    f();
  } catch (std::exception const&) {  // no news, see above
  }
}

}  // namespace frugal::detail
