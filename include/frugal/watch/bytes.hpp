// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <string>

#include <frugal/watch/number_texts.hpp>

namespace frugal::detail {

/// A size for messages: "1.5 KiB".
inline std::string bytes_text(double bytes) {
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  std::string const digits =
      watch::detail::digits_of(bytes, std::chars_format::fixed, unit == 0 ? 0 : 1);
  return digits + " " + units[unit];
}

}  // namespace frugal::detail
