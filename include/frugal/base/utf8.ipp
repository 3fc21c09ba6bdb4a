// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::size_t first_invalid_utf8(std::string_view text) {
  auto const is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  for (std::size_t at = 0;;) {
    // Most text is pure ASCII.
    auto const rest = text.begin() + static_cast<std::ptrdiff_t>(at);
    at = static_cast<std::size_t>(std::find_if_not(rest, text.end(), is_ascii) - text.begin());
    if (at == text.size()) return at;
    CodePoint const next = code_point_at(text, at);
    if (!next.valid) return at;
    at += next.bytes;
  }
}

FRUGAL_INLINE std::string as_utf8(std::string_view text) {
  std::string out;
  while (true) {
    std::size_t const valid = first_invalid_utf8(text);
    out += text.substr(0, valid);
    if (valid == text.size()) return out;
    append_utf8(out, replacement_character);
    text.remove_prefix(valid + 1);
  }
}

FRUGAL_INLINE std::string beginning(std::string text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && continues_code_point(text[bytes])) --bytes;
  return text.substr(0, bytes) + " \xe2\x80\xa6";
}

}  // namespace frugal::detail
