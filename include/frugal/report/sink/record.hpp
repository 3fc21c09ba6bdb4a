// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/event.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Seconds since 1970.
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace frugal::detail

namespace frugal {

/// What happened when a MetricRecord was made.
enum class RecordKind : std::uint8_t {
  begin,       ///< the run begins, or continues from a checkpoint
  step,        ///< the cadence of the sink is due
  validation,  ///< a validation is complete
  epoch,       ///< an epoch is complete
  end,         ///< the run is at its end, or is preempted
  event        ///< something that a policy recorded: "resume", "cost"
};

/// What a metric sink gets, and what a line of Log has: a moment of the run and its values.
struct MetricRecord {
  using Field = std::pair<std::string, Event::Value>;

  RecordKind kind = RecordKind::step;
  std::string name{};  ///< "begin", "step", "validation", "epoch", "end", or that of the event
  Counters at{};
  double seconds = 0;           ///< of training
  std::vector<Field> fields{};  ///< numbers and, in "end" and events, texts; in order of writing
  bool preempted = false;       ///< of "end": the run is not at its end, and may be resumed

  MetricRecord& add(std::string_view field, Event::Value value);

  Event::Value const* find(std::string_view field) const;
  /// The value of a numeric field; nothing if there is none of that name.
  std::optional<double> number(std::string_view field) const;
  /// The value of a text field; empty if there is none of that name.
  std::string_view text(std::string_view field) const;

  static std::optional<double> number_in(Event::Value const& value);
};

/// The outcome of a metric sink's fit.
struct SinkOutcome {
  std::uint64_t written = 0;    ///< records that arrived
  std::uint64_t lost = 0;       ///< records that did not
  std::string first_failure{};  ///< why the first of them did not
};

}  // namespace frugal

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

std::string mllog_value(Event::Value const& value);

/// Values as one JSON object, in their order.
std::string mllog_object(std::vector<std::pair<std::string, Event::Value>> const& fields);

/// A line as MLPerf's mllog writes it; `value` and `metadata` are JSON.
std::string mllog_line(std::uint64_t time_ms, std::string_view event_type, std::string_view key,
                       std::string_view value, std::string_view metadata);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/record.ipp>
#endif
