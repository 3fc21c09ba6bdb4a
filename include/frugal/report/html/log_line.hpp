// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_events.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::html {

/// A line of a log: a flat object of numbers and strings.
struct LogLine {
  struct Field {
    std::string name;
    double number = std::numeric_limits<double>::quiet_NaN();  ///< NaN for null
    std::optional<std::string> text{};                         ///< of a string
    std::string digits{};  ///< of a whole number from 2^53 on, which a double may round

    bool is_number() const { return !text; }
  };

  std::string event;
  double step = 0;
  double seconds = 0;
  std::vector<Field> fields{};  ///< the others, in their order

  Field const* find(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::string text(std::string_view name) const;
};

/// The handler that RapidJSON calls: it makes no tree, so that a log of a million lines is read in
/// seconds.
class LogLineHandler : public detail::NumbersAsWritten {
 public:
  static constexpr std::size_t most_fields = 256;
  static constexpr std::size_t longest_text = 4096;

  explicit LogLineHandler(detail::JsonStream const& stream) : stream_(stream) {}

  bool Null() { return add({.name = {}}); }
  bool Bool(bool truth) { return add({.name = {}, .number = truth ? 1.0 : 0.0}); }
  bool RawNumber(char const*, unsigned size, bool);
  bool String(char const* text, unsigned size, bool);
  bool Key(char const* text, unsigned size, bool);
  // Log writes no object within an object, and no array.
  bool StartObject() { return !std::exchange(open_, true); }
  bool StartArray() { return false; }
  bool EndObject(unsigned) { return true; }
  bool EndArray(unsigned) { return false; }

  LogLine line{};
  bool has_step = false, has_seconds = false;

 private:
  bool add(LogLine::Field field);

  detail::JsonStream const& stream_;
  std::string name_;
  bool open_ = false;
};

/// Nothing if the text is no line of Log; `why` then says so. The text is overwritten.
std::optional<LogLine> parse_log_line(std::string& text, std::string& why);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/log_line.ipp>
#endif
