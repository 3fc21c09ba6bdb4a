// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/record.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <variant>

namespace frugal {

FRUGAL_INLINE MetricRecord& MetricRecord::add(std::string_view field, Event::Value value) {
  fields.emplace_back(std::string(field), std::move(value));
  return *this;
}

FRUGAL_INLINE Event::Value const* MetricRecord::find(std::string_view field) const {
  auto const found = std::find_if(fields.begin(), fields.end(),
                                  [&](Field const& each) { return each.first == field; });
  return found == fields.end() ? nullptr : &found->second;
}

FRUGAL_INLINE std::optional<double> MetricRecord::number(std::string_view field) const {
  Event::Value const* const value = find(field);
  return value == nullptr ? std::nullopt : number_in(*value);
}

FRUGAL_INLINE std::string_view MetricRecord::text(std::string_view field) const {
  Event::Value const* const value = find(field);
  auto const* const found = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return found == nullptr ? std::string_view() : *found;
}

FRUGAL_INLINE std::optional<double> MetricRecord::number_in(Event::Value const& value) {
  if (auto const* const real = std::get_if<double>(&value)) return *real;
  if (auto const* const count = std::get_if<std::uint64_t>(&value)) {
    return static_cast<double>(*count);
  }
  return std::nullopt;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void append_csv_cell(std::string& out, std::string_view text) {
  bool const quoted = text.find_first_of(",\"\r\n") != std::string_view::npos;
  if (quoted) out += '"';
  for (char const c : as_utf8(text)) {
    if (c == '"') out += '"';
    out += c == '\r' || c == '\n' ? ' ' : c;
  }
  if (quoted) out += '"';
}

FRUGAL_INLINE void append_csv_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += std::isnan(number) ? "nan" : (number > 0 ? "inf" : "-inf");
    return;
  }
  char digits[32];
  auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

FRUGAL_INLINE std::string csv_rows(MetricRecord const& record) {
  std::string before;
  append_csv_cell(before, record.name);
  for (std::uint64_t const count : {record.at.step, record.at.epoch, record.at.sample}) {
    before += ',' + std::to_string(count);
  }
  before += ',';
  append_csv_number(before, record.seconds);
  std::string rows;
  for (auto const& [name, value] : record.fields) {
    rows += before + ',';
    append_csv_cell(rows, name);
    rows += ',';
    if (auto const* const text = std::get_if<std::string>(&value)) {
      append_csv_cell(rows, *text);
    } else if (auto const* const count = std::get_if<std::uint64_t>(&value)) {
      rows += std::to_string(*count);  // a double would round a seed
    } else {
      append_csv_number(rows, std::get<double>(value));
    }
    rows += "\r\n";
  }
  return rows;
}

FRUGAL_INLINE std::string mllog_value(Event::Value const& value) {
  return JsonWriter().value(value).str();
}

FRUGAL_INLINE std::string mllog_object(
    std::vector<std::pair<std::string, Event::Value>> const& fields) {
  JsonWriter object;
  object.object(JsonLayout::spaced);
  for (auto const& [name, value] : fields) object.add(name, value);
  return object.str();
}

FRUGAL_INLINE std::string mllog_line(std::uint64_t time_ms, std::string_view event_type,
                                     std::string_view key, std::string_view value,
                                     std::string_view metadata) {
  JsonWriter line(":::MLLOG ");
  line.object(JsonLayout::spaced).add("namespace", "").add("time_ms", time_ms);
  line.add("event_type", event_type).add("key", key);
  line.key("value").raw(value).key("metadata").raw(metadata);
  return line.str("\n");
}

}  // namespace frugal::detail
