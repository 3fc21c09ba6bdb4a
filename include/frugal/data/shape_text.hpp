// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <locale>
#include <sstream>
#include <string>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// "[32, 784] Float", for messages.
FRUGAL_INLINE std::string shape_text(at::Tensor const& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text.imbue(std::locale::classic());  // the program's may group digits: [1,024, 8]
  text << tensor.sizes() << ' ' << tensor.scalar_type();
  return text.str();
}

}  // namespace frugal::detail
