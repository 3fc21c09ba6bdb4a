// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/event.hpp>

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/record.ipp>
#endif
