// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::string Error::sentence(Fault const& fault) {
  std::string text = "frugal: " + fault.what;
  if (!fault.where.empty()) text += " (" + fault.where + ")";
  if (!fault.why.empty()) text += ": " + fault.why;
  if (!text.ends_with('.')) text += '.';  // a cause may be the sentence of another error
  if (!fault.fix.empty()) text += ' ' + fault.fix;
  return text;
}

}  // namespace frugal
