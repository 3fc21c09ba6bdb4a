// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/text_width.hpp>

#include <frugal/inline.hpp>

#include <array>
#include <utility>

namespace frugal::watch::detail {

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

}  // namespace frugal::watch::detail

namespace frugal::watch {

FRUGAL_INLINE std::size_t text_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    auto const next = detail::first_character(text);
    columns += detail::columns_of(next.value);
    text.remove_prefix(next.bytes);
  }
  return columns;
}

FRUGAL_INLINE std::string_view truncated(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  while (end < text.size()) {
    auto const next = detail::first_character(text.substr(end));
    std::size_t const width = detail::columns_of(next.value);
    if (width > columns) break;
    columns -= width;
    end += next.bytes;
  }
  return text.substr(0, end);
}

FRUGAL_INLINE std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto const next = detail::first_character(text);
    bool const control = next.value < 0x20 || (next.value >= 0x7F && next.value < 0xA0) ||
                         (next.value >= 0x2028 && next.value <= 0x202E) ||
                         (next.value >= 0x2066 && next.value <= 0x2069);
    if (!next.valid || control) {
      result += '?';
    } else {
      result += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
  return result;
}

}  // namespace frugal::watch
