// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <frugal/inline.hpp>

// Writes JSON by hand: otherwise everything that includes the checkpoint writer would pay for a
// JSON library, which takes as long to compile as all the rest. Reading uses a library.
namespace frugal::detail {

/// Length in bytes of the first character of `text`, or nothing if it is not UTF-8 (The Unicode
/// Standard, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
FRUGAL_INLINE std::optional<std::size_t> utf8_character(std::string_view text) {
  auto const at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  auto const within = [&](std::size_t i, unsigned low, unsigned high) {
    return at(i) >= low && at(i) <= high;
  };
  auto const tail = [&](std::size_t i) { return within(i, 0x80, 0xbf); };
  if (text.empty()) return std::nullopt;
  unsigned const first = at(0);
  if (first < 0x80) return 1;
  if (within(0, 0xc2, 0xdf) && tail(1)) return 2;
  if (within(0, 0xe0, 0xef) && tail(2)) {
    unsigned const low = first == 0xe0 ? 0xa0 : 0x80;
    unsigned const high = first == 0xed ? 0x9f : 0xbf;
    if (within(1, low, high)) return 3;
  }
  if (within(0, 0xf0, 0xf4) && tail(2) && tail(3)) {
    unsigned const low = first == 0xf0 ? 0x90 : 0x80;
    unsigned const high = first == 0xf4 ? 0x8f : 0xbf;
    if (within(1, low, high)) return 4;
  }
  return std::nullopt;
}

FRUGAL_INLINE bool is_utf8(std::string_view text) {
  auto const is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  // Most text is pure ASCII.
  auto at = std::find_if_not(text.begin(), text.end(), is_ascii);
  while (at != text.end()) {
    auto const size = utf8_character(text.substr(static_cast<std::size_t>(at - text.begin())));
    if (!size) return false;
    at = std::find_if_not(at + static_cast<std::ptrdiff_t>(*size), text.end(), is_ascii);
  }
  return true;
}

/// The text, with each byte that is not part of a valid character replaced by U+FFFD.
FRUGAL_INLINE std::string as_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    auto const size = utf8_character(text);
    out += size ? text.substr(0, *size) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(size.value_or(1));
  }
  return out;
}

/// Appends a JSON string. `text` must be UTF-8. Escapes only what RFC 8259, section 7, requires, in
/// the short form where one exists, as most writers do.
FRUGAL_INLINE void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view special = "\b\f\n\r\t\"\\";
  constexpr std::string_view letters = "bfnrt\"\\";
  constexpr std::string_view digits = "0123456789abcdef";
  auto const is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  out += '"';
  for (auto at = text.begin(); at != text.end();) {
    auto const end = std::find_if_not(at, text.end(), is_plain);
    out.append(at, end);
    if (end == text.end()) break;
    auto const code = static_cast<unsigned char>(*end);
    if (auto const found = special.find(*end); found != std::string_view::npos) {
      out += '\\';
      out += letters[found];
    } else {
      out += "\\u00";
      out += digits[code >> 4U];
      out += digits[code & 15U];
    }
    at = end + 1;
  }
  out += '"';
}

/// Appends the shortest digits that read back as the same double; null for a non-finite number,
/// which JSON cannot express.
FRUGAL_INLINE void append_json(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char digits[32];
  auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

}  // namespace frugal::detail
