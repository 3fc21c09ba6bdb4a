// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/log_line.hpp>

#include <frugal/inline.hpp>

#include <charconv>
#include <cstdint>
#include <system_error>

namespace frugal::html {

FRUGAL_INLINE LogLine::Field const* LogLine::find(std::string_view name) const {
  for (Field const& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

FRUGAL_INLINE std::optional<double> LogLine::number(std::string_view name) const {
  Field const* const field = find(name);
  return field != nullptr && field->is_number() ? std::optional(field->number) : std::nullopt;
}

FRUGAL_INLINE std::string LogLine::text(std::string_view name) const {
  Field const* const field = find(name);
  return field != nullptr && field->text ? *field->text : std::string();
}

FRUGAL_INLINE bool LogLineHandler::RawNumber(char const*, unsigned size, bool) {
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

FRUGAL_INLINE bool LogLineHandler::String(char const* text, unsigned size, bool) {
  if (!detail::is_json_text({text, size})) return false;
  LogLine::Field field;
  field.text.emplace(text, std::min<std::size_t>(size, longest_text));
  return add(std::move(field));
}

FRUGAL_INLINE bool LogLineHandler::Key(char const* text, unsigned size, bool) {
  name_.assign(text, std::min<std::size_t>(size, longest_text));
  return detail::is_json_text({text, size});
}

FRUGAL_INLINE bool LogLineHandler::add(LogLine::Field field) {
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
