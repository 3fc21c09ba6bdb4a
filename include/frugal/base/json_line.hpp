// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>

#include <concepts>
#include <string>
#include <string_view>

namespace frugal::detail {

/// One flat JSON object on one line: {"event":"step","step":100,"loss":0.71}. Bytes that are not
/// UTF-8 become U+FFFD, so that any path or error text gives a readable line.
class JsonLine {
 public:
  JsonLine() : writer_(reserved()) { writer_.object(); }

  JsonLine& add(std::string_view key, std::string_view text) {
    writer_.add(key, text);
    return *this;
  }
  template <class Value>
    requires(!std::convertible_to<Value const&, std::string_view>)
  JsonLine& add(std::string_view key, Value const& value) {
    writer_.add(key, value);
    return *this;
  }

  /// The object, with a line feed.
  std::string str() && { return writer_.str("\n"); }

 private:
  static std::string reserved() {
    std::string text;
    text.reserve(256);  // as long as most lines of a log
    return text;
  }

  JsonWriter writer_;
};

}  // namespace frugal::detail
