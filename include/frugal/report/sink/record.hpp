// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/inline.hpp>

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

  FRUGAL_INLINE MetricRecord& add(std::string_view field, Event::Value value) {
    fields.emplace_back(std::string(field), std::move(value));
    return *this;
  }

  FRUGAL_INLINE Event::Value const* find(std::string_view field) const {
    auto const found = std::find_if(fields.begin(), fields.end(),
                                    [&](Field const& each) { return each.first == field; });
    return found == fields.end() ? nullptr : &found->second;
  }
  /// The value of a numeric field; nothing if there is none of that name.
  FRUGAL_INLINE std::optional<double> number(std::string_view field) const {
    Event::Value const* const value = find(field);
    return value == nullptr ? std::nullopt : number_in(*value);
  }
  /// The value of a text field; empty if there is none of that name.
  FRUGAL_INLINE std::string_view text(std::string_view field) const {
    Event::Value const* const value = find(field);
    auto const* const found = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return found == nullptr ? std::string_view() : *found;
  }

  FRUGAL_INLINE static std::optional<double> number_in(Event::Value const& value) {
    if (auto const* const real = std::get_if<double>(&value)) return *real;
    if (auto const* const count = std::get_if<std::uint64_t>(&value)) {
      return static_cast<double>(*count);
    }
    return std::nullopt;
  }
};

/// The outcome of a metric sink's fit.
struct SinkOutcome {
  std::uint64_t written = 0;    ///< records that arrived
  std::uint64_t lost = 0;       ///< records that did not
  std::string first_failure{};  ///< why the first of them did not
};

}  // namespace frugal
