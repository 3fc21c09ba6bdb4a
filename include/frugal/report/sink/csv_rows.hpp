// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <frugal/report/sink/record.hpp>

namespace frugal::detail {

inline constexpr std::string_view csv_header = "event,step,epoch,samples,seconds,name,value\r\n";

/// Appends a cell after RFC 4180: quoted where it must be. Line breaks become spaces, so that each
/// row is one line and can be cut off; bytes that are not UTF-8 become U+FFFD, for a reader would
/// refuse the whole file.
void append_csv_cell(std::string& out, std::string_view text);

/// Appends the shortest digits that read back as the same double. What is not finite has the names
/// that readers of CSV know: nan, inf, -inf.
void append_csv_number(std::string& out, double number);

/// One row for each field of a record.
std::string csv_rows(MetricRecord const& record);

/// The event of such a row.
inline std::string_view csv_event(std::string_view row) { return row.substr(0, row.find(',')); }

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/csv_rows.ipp>
#endif
