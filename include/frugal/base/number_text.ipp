// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace frugal::detail {

FRUGAL_INLINE std::string fixed(double number, int digits) {
  std::array<char, 512> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

FRUGAL_INLINE std::string fixed_short(double number, int digits) {
  std::string text = fixed(number, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

FRUGAL_INLINE std::string general(double number, int digits) {
  std::array<char, 64> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::general, digits);
  return {text.data(), end.ptr};
}

FRUGAL_INLINE std::string shortest_text(double number) {
  std::array<char, 40> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

FRUGAL_INLINE std::string without_point(double number) {
  std::array<char, 64> text;
  auto const end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific);
  std::string all(text.data(), end.ptr);
  std::size_t const at = all.find('e');
  int exponent = 0;
  char const* const begin = all.data() + at + (all[at + 1] == '+' ? 2 : 1);
  std::from_chars(begin, all.data() + all.size(), exponent);
  std::string digits = all.substr(0, at);
  if (std::size_t const point = digits.find('.'); point != std::string::npos) {
    exponent -= static_cast<int>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  return digits + "e" + std::to_string(exponent);
}

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

namespace frugal::watch {

FRUGAL_INLINE std::string rate_text(double value) {
  char const* unit = "";
  // 999.5 rounds to 1000, which three digits show as 1e+03.
  if (value >= 999.5e6) {
    value /= 1e9;
    unit = "G";
  } else if (value >= 999.5e3) {
    value /= 1e6;
    unit = "M";
  } else if (value >= 999.5) {
    value /= 1e3;
    unit = "k";
  }
  return frugal::detail::general(value, 3) + unit;
}

FRUGAL_INLINE std::string duration_text(double seconds) {
  if (!(seconds >= 0)) return "?";
  auto const whole = static_cast<unsigned long long>(std::llround(std::min(seconds, 1e12)));
  char text[40];
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%llus", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%llum%02llus", whole / 60, whole % 60);
  } else if (whole < 86400) {
    std::snprintf(text, sizeof text, "%lluh%02llum", whole / 3600, whole % 3600 / 60);
  } else {
    std::snprintf(text, sizeof text, "%llud%02lluh", whole / 86400, whole % 86400 / 3600);
  }
  return text;
}

}  // namespace frugal::watch
