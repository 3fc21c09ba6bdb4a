// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/shape_text.hpp>

#include <frugal/inline.hpp>

#include <locale>
#include <sstream>

namespace frugal::detail {

FRUGAL_INLINE std::string shape_text(at::Tensor const& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text.imbue(std::locale::classic());  // the program's may group digits: [1,024, 8]
  text << tensor.sizes() << ' ' << tensor.scalar_type();
  return text.str();
}

}  // namespace frugal::detail
