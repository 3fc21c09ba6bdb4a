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

FRUGAL_INLINE void Error::add_place(std::string const& place) {
  fault_.where = fault_.where.empty() ? place : place + ", " + fault_.where;
  static_cast<std::runtime_error&>(*this) = std::runtime_error(sentence(fault_));
}

}  // namespace frugal
