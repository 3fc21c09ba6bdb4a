// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace frugal::detail {

/// What stands for bytes that are no UTF-8.
inline constexpr char32_t replacement_character = 0xfffd;

struct CodePoint {
  char32_t value = replacement_character;
  std::size_t bytes = 1;  ///< that it takes in the text, at least 1
  bool valid = false;     ///< false: the bytes are no UTF-8
};

/// The code point at byte `at`, which is below text.size(). Each longest sequence of bytes that
/// begins a code point and does not end it counts as one U+FFFD, and so does any other wrong byte:
/// that is the practice which the Unicode standard recommends (section 3.9, "U+FFFD substitution of
/// maximal subparts"), and what Python's `bytes.decode('utf-8', 'replace')` does.
constexpr CodePoint code_point_at(std::string_view text, std::size_t at) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned const lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  // The second byte's range excludes overlong forms, surrogates and what is above U+10FFFF
  // (table 3-7).
  std::size_t const more = lead < 0xc2   ? 0
                           : lead < 0xe0 ? 1
                           : lead < 0xf0 ? 2
                           : lead < 0xf5 ? 3
                                         : 0;
  if (more == 0) return {};
  unsigned const low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned const high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  char32_t value = lead & (0x3fU >> more);
  for (std::size_t i = 1; i <= more; ++i) {
    bool const there = at + i < text.size();
    unsigned const next = there ? byte(at + i) : 0;
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xbf)) {
      return {replacement_character, i, false};
    }
    value = value << 6 | (next & 0x3fU);
  }
  return {value, more + 1, true};
}

/// Appends a code point below U+110000 that is no surrogate.
inline void append_utf8(std::string& text, char32_t value) {
  auto const put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xc0 | value >> 6);
    put(0x80 | (value & 0x3f));
  } else if (value < 0x10000) {
    put(0xe0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3f));
    put(0x80 | (value & 0x3f));
  } else {
    put(0xf0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3f));
    put(0x80 | (value >> 6 & 0x3f));
    put(0x80 | (value & 0x3f));
  }
}

/// Whether a byte of a valid text is not the first of its code point.
constexpr bool continues_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

/// Code points of a valid text.
inline std::size_t count_code_points(std::string_view text) {
  return text.size() -
         static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_code_point));
}

/// The first byte that is no UTF-8; text.size() if there is none.
std::size_t first_invalid_utf8(std::string_view text);

inline bool is_utf8(std::string_view text) { return first_invalid_utf8(text) == text.size(); }

/// The text, with each byte that is not part of a valid character replaced by U+FFFD.
std::string as_utf8(std::string_view text);

/// The first bytes of a text, not cut within a character, and "…" behind them; all of a text that has no more.
std::string beginning(std::string text, std::size_t bytes);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/utf8.ipp>
#endif
