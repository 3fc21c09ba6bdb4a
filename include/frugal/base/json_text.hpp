// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

// Writes JSON by hand: otherwise everything that includes the checkpoint writer would pay for a
// JSON library, which takes as long to compile as all the rest. Reading uses a library.
namespace frugal::detail {

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD, as as_utf8 has it. Escapes only
/// what RFC 8259, section 7, requires, in the short form where one exists, as most writers do.
FRUGAL_INLINE void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view special = "\b\f\n\r\t\"\\";
  constexpr std::string_view letters = "bfnrt\"\\";
  constexpr std::string_view digits = "0123456789abcdef";
  auto const is_plain = [](char c) {
    return c >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\';
  };
  out += '"';
  for (auto at = text.begin(); at != text.end();) {
    auto const end = std::find_if_not(at, text.end(), is_plain);
    out.append(at, end);
    if (end == text.end()) break;
    at = end + 1;
    auto const code = static_cast<unsigned char>(*end);
    if (code >= 0x80) {
      CodePoint const next = code_point_at(text, static_cast<std::size_t>(end - text.begin()));
      append_utf8(out, next.value);
      if (next.valid) at = end + static_cast<std::ptrdiff_t>(next.bytes);
    } else if (auto const found = special.find(*end); found != std::string_view::npos) {
      out += '\\';
      out += letters[found];
    } else {
      out += "\\u00";
      out += digits[code >> 4U];
      out += digits[code & 15U];
    }
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
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_json(std::string& out, std::integral auto number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace frugal::detail
