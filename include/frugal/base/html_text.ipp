// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/html_text.hpp>

#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::string as_html(std::string_view text) {
  std::string out;
  for (char const c : as_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Other control characters are not allowed in HTML at all.
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
          out += "\xef\xbf\xbd";
        } else {
          out += c;
        }
    }
  }
  return out;
}

FRUGAL_INLINE std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

FRUGAL_INLINE std::string beginning(std::string text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && continues_code_point(text[bytes])) --bytes;
  return text.substr(0, bytes) + " \xe2\x80\xa6";
}

}  // namespace frugal::detail
