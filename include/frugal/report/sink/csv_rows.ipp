// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/csv_rows.hpp>

#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>

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

}  // namespace frugal::detail
