// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_text.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace frugal::detail {

/// One flat JSON object on one line: {"event":"step","step":100,"loss":0.71}. Bytes that are not
/// UTF-8 become U+FFFD, so that any path or error text gives a readable line.
class JsonLine {
 public:
  JsonLine() { line_.reserve(256); }  // as long as most lines of a log

  FRUGAL_INLINE JsonLine& add(std::string_view key, std::string_view text) {
    name(key);
    append_json(line_, as_utf8(text));
    return *this;
  }
  JsonLine& add(std::string_view key, char const* text) { return add(key, std::string_view(text)); }
  JsonLine& add(std::string_view key, std::integral auto number) {
    name(key);
    line_ += std::to_string(number);
    return *this;
  }
  FRUGAL_INLINE JsonLine& add(std::string_view key, double number) {
    name(key);
    append_json(line_, number);
    return *this;
  }

  /// The object, with a line feed.
  FRUGAL_INLINE std::string str() && {
    line_ += line_.empty() ? "{}\n" : "}\n";
    return std::move(line_);
  }

 private:
  FRUGAL_INLINE void name(std::string_view key) {
    line_ += line_.empty() ? '{' : ',';
    append_json(line_, as_utf8(key));
    line_ += ':';
  }

  std::string line_;
};

}  // namespace frugal::detail
