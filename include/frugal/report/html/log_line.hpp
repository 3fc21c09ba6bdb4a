// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_events.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
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

  FRUGAL_INLINE Field const* find(std::string_view name) const {
    for (Field const& field : fields) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }
  FRUGAL_INLINE std::optional<double> number(std::string_view name) const {
    Field const* const field = find(name);
    return field != nullptr && field->is_number() ? std::optional(field->number) : std::nullopt;
  }
  FRUGAL_INLINE std::string text(std::string_view name) const {
    Field const* const field = find(name);
    return field != nullptr && field->text ? *field->text : std::string();
  }
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
  FRUGAL_INLINE bool RawNumber(char const*, unsigned size, bool) {
    std::string_view const text = stream_.last(size);
    LogLine::Field field;
    // A number that no double holds stays NaN, and is drawn as little.
    double number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc()) {
      field.number = number;
      if (number >= 0x1p53 && text.find_first_not_of("0123456789") == text.npos) {
        field.digits = text;
      }
    }
    return add(std::move(field));
  }
  FRUGAL_INLINE bool String(char const* text, unsigned size, bool) {
    if (!detail::is_json_text({text, size})) return false;
    LogLine::Field field;
    field.text.emplace(text, std::min<std::size_t>(size, longest_text));
    return add(std::move(field));
  }
  FRUGAL_INLINE bool Key(char const* text, unsigned size, bool) {
    name_.assign(text, std::min<std::size_t>(size, longest_text));
    return detail::is_json_text({text, size});
  }
  // Log writes no object within an object, and no array.
  bool StartObject() { return !std::exchange(open_, true); }
  bool StartArray() { return false; }
  bool EndObject(unsigned) { return true; }
  bool EndArray(unsigned) { return false; }

  LogLine line{};
  bool has_step = false, has_seconds = false;

 private:
  FRUGAL_INLINE bool add(LogLine::Field field) {
    if (!open_) return false;  // a value that is no object
    // A policy's event may have fields of these names as well: the first ones are Log's.
    if (name_ == "event" && field.text && line.event.empty()) {
      line.event = *std::move(field.text);
    } else if (name_ == "step" && field.number >= 0 && !has_step) {
      line.step = field.number;
      has_step = true;
    } else if (name_ == "seconds" && field.number >= 0 && !has_seconds) {
      line.seconds = field.number;
      has_seconds = true;
    } else if (line.fields.size() < most_fields) {
      field.name = name_;
      line.fields.push_back(std::move(field));
    }
    return true;
  }

  detail::JsonStream const& stream_;
  std::string name_;
  bool open_ = false;
};

/// Nothing if the text is no line of Log; `why` then says so. The text is overwritten.
FRUGAL_INLINE std::optional<LogLine> parse_log_line(std::string& text, std::string& why) {
  detail::JsonStream stream(text.data(), text.size());
  LogLineHandler handler(stream);
  auto const fault = detail::parse_json(stream, handler);
  if (fault) {
    why = "it is no flat JSON object, at byte " + std::to_string(fault->at) + ": " + fault->why;
  } else if (handler.line.event.empty()) {
    why = "it has no \"event\"";
  } else if (!handler.has_step || !handler.has_seconds) {
    why = handler.has_step ? "it has no \"seconds\"" : "it has no \"step\"";
  } else {
    return std::move(handler.line);
  }
  return std::nullopt;
}

}  // namespace frugal::html
