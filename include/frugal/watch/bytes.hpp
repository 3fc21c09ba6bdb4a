// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>

namespace frugal::detail {

/// A size for messages, the same in every locale: "1.5 KiB". A difference may be negative.
inline std::string bytes_text(double bytes) {
  constexpr std::array units{" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 400> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), bytes,
                                 std::chars_format::fixed, unit == 0 ? 0 : 1);
  return std::string(text.data(), end.ptr) + units[unit];
}

}  // namespace frugal::detail
