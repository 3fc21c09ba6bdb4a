// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>

namespace frugal::watch {

/// One flat JSON object on one line: {"event":"step","step":100,"loss":0.71}.
///
/// Written by hand because a JSON library is several times as long to compile as all of frugal's
/// own headers together, and everybody who includes Log would pay for it. Only writing flat
/// objects is here; what reads JSON uses a library, the tests of this one included.
class JsonLine {
 public:
  JsonLine& add(std::string_view key, std::string_view text) {
    name(key);
    quote(text);
    return *this;
  }
  JsonLine& add(std::string_view key, char const* text) { return add(key, std::string_view(text)); }
  JsonLine& add(std::string_view key, std::integral auto number) {
    name(key);
    char digits[24];
    auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    line_.append(digits, static_cast<std::size_t>(end - digits));
    return *this;
  }
  /// The shortest digits that read back as the same double; null for NaN and infinities, which
  /// JSON has no word for.
  JsonLine& add(std::string_view key, double number) {
    name(key);
    if (!std::isfinite(number)) {
      line_ += "null";
      return *this;
    }
    char digits[32];
    auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    line_.append(digits, static_cast<std::size_t>(end - digits));
    return *this;
  }

  /// The object, with its line's end.
  std::string str() && {
    line_ += line_.empty() ? "{}\n" : "}\n";
    return std::move(line_);
  }

 private:
  void name(std::string_view key) {
    line_ += line_.empty() ? '{' : ',';
    quote(key);
    line_ += ':';
  }

  // RFC 8259, section 7: quotation mark, reverse solidus and control characters are escaped.
  void quote(std::string_view text) {
    line_ += '"';
    for (char const c : text) {
      if (c == '"' || c == '\\') {
        line_ += '\\';
        line_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
        line_ += escape;
      } else {
        line_ += c;
      }
    }
    line_ += '"';
  }

  std::string line_;
};

}  // namespace frugal::watch
