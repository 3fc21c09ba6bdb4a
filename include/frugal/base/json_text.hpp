// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include <frugal/inline.hpp>

// Writes JSON by hand: otherwise everything that includes the checkpoint writer would pay for a
// JSON library, which takes as long to compile as all the rest. Reading uses a library.
namespace frugal::detail {

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
