// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_text.hpp>

#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace frugal::detail {

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

FRUGAL_INLINE void append_json(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace frugal::detail
