// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::string hex_of(std::uint64_t hash) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace frugal
