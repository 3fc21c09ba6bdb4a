// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE std::string fixed(double number, int digits) {
  std::array<char, 512> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

FRUGAL_INLINE std::string fixed_small(double number, int digits) {
  double const size = std::abs(number);
  if (size == 0 || !std::isfinite(size) || size >= 1) return fixed(number, digits);
  return fixed(number, std::clamp(1 - static_cast<int>(std::floor(std::log10(size))), digits, 12));
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

FRUGAL_INLINE std::string exact_text(double number) {
  return number == std::trunc(number) ? general(number, 17) : shortest_text(number);
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

FRUGAL_INLINE std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace frugal::detail
