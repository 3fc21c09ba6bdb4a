// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/inline.hpp>

/// Columns of a terminal that a text takes. wcwidth() would do, but depends on the locale, which a
/// library does not set.
namespace frugal::watch {

namespace detail {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

FRUGAL_INLINE CodePoint code_point_at(std::string_view text) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char const first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t const length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || text.size() < length) return {};
  constexpr std::array<unsigned char, 5> mask{0, 0, 0x1F, 0x0F, 0x07};
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  char32_t value = first & mask[length];
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  bool const surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < least[length] || value > 0x10FFFF || surrogate) return {};
  return {value, length};
}

FRUGAL_INLINE std::size_t columns_of(char32_t c) {
  using Range = std::pair<char32_t, char32_t>;
  // Combining marks, joiners and variation selectors that are met in names.
  constexpr std::array<Range, 5> none{
      {{0x300, 0x36F}, {0x1AB0, 0x1AFF}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}}};
  // East Asian wide and emoji (Unicode annex 11), in blocks.
  constexpr std::array<Range, 8> two{{{0x1100, 0x115F},
                                      {0x2E80, 0x303E},
                                      {0x3041, 0xA4CF},
                                      {0xAC00, 0xD7A3},
                                      {0xF900, 0xFAFF},
                                      {0xFF00, 0xFF60},
                                      {0x1F300, 0x1FAFF},
                                      {0x20000, 0x3FFFD}}};
  for (auto const& [from, to] : none) {
    if (c >= from && c <= to) return 0;
  }
  for (auto const& [from, to] : two) {
    if (c >= from && c <= to) return 2;
  }
  return 1;
}

}  // namespace detail

/// Columns of a text without control characters (see printable).
FRUGAL_INLINE std::size_t text_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    auto const next = detail::code_point_at(text);
    columns += next.bytes == 0 ? 1 : detail::columns_of(next.value);
    text.remove_prefix(next.bytes == 0 ? 1 : next.bytes);
  }
  return columns;
}

/// The longest beginning that takes at most `columns`; never half a character.
FRUGAL_INLINE std::string_view truncated(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  while (end < text.size()) {
    auto const next = detail::code_point_at(text.substr(end));
    std::size_t const width = next.bytes == 0 ? 1 : detail::columns_of(next.value);
    if (width > columns) break;
    columns -= width;
    end += next.bytes == 0 ? 1 : next.bytes;
  }
  return text.substr(0, end);
}

/// The text with `?` for control characters, for those that turn the direction of writing, and for
/// bytes that are not UTF-8: a metric's name is the user's, and must not move the cursor.
FRUGAL_INLINE std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto const next = detail::code_point_at(text);
    bool const control = next.value < 0x20 || (next.value >= 0x7F && next.value < 0xA0) ||
                         (next.value >= 0x2028 && next.value <= 0x202E) ||
                         (next.value >= 0x2066 && next.value <= 0x2069);
    if (next.bytes == 0 || control) {
      result += '?';
    } else {
      result += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes == 0 ? 1 : next.bytes);
  }
  return result;
}

}  // namespace frugal::watch
