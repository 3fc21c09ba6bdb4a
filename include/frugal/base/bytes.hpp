// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// A size for messages, the same in every locale: "1.5 KiB". A difference may be negative.
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
