// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace frugal::detail {

/// Runs clean-up during error handling and drops its exceptions: the original error is the one to
/// report.
template <class F>
void quietly(F&& f) {
  try {
    f();
  } catch (std::exception const&) {  // dropped, see above
  }
}

}  // namespace frugal::detail
