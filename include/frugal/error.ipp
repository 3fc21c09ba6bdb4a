// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::string Error::sentence(Fault const& fault) {
  std::string text = "frugal: " + fault.what;
  if (!fault.where.empty()) text += " (" + fault.where + ")";
  if (!fault.why.empty()) text += ": " + fault.why;
  text += '.';
  if (!fault.fix.empty()) text += ' ' + fault.fix;
  return text;
}

}  // namespace frugal
