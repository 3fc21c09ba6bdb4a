// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <string>

#include <frugal/inline.hpp>

// printf and streams follow the locale of the program: a comma for the point breaks JSON and SVG.
namespace frugal::detail {

/// A number with so many digits after the point, in any locale.
FRUGAL_INLINE std::string fixed(double number, int digits) {
  std::array<char, 512> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

/// Fixed notation without trailing zeros: "20", "0.5".
FRUGAL_INLINE std::string fixed_short(double number, int digits) {
  std::string text = fixed(number, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// A number with at most so many significant digits, as %g prints it in the C locale.
FRUGAL_INLINE std::string general(double number, int digits) {
  std::array<char, 64> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::general, digits);
  return {text.data(), end.ptr};
}

/// The shortest digits that read back as the same number.
FRUGAL_INLINE std::string shortest_text(double number) {
  std::array<char, 40> text;
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

/// A number without a decimal point, "9995e-4", for a library that reads it by a locale that is not known:
/// every locale reads the same number. Finite numbers only; of the shortest text that has all bits.
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

}  // namespace frugal::detail
