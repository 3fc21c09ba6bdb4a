// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/bytes.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <array>
#include <cmath>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE std::string bytes_text(double bytes) {
  constexpr std::array units{" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return fixed(bytes, unit == 0 ? 0 : 1) + units[unit];
}

}  // namespace frugal::detail
