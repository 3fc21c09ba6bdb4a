// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>
#include <frugal/report/profile/bound.hpp>
#include <frugal/report/profile/hot_spots.hpp>
#include <frugal/report/profile/memory_line.hpp>
#include <frugal/report/profile/trace.hpp>

namespace frugal {

/// What one window of Profile has found.
struct WindowProfile {
  std::uint64_t step = 0;   ///< optimizer step at the end of the window
  std::uint64_t steps = 0;  ///< that were profiled
  double seconds = 0;       ///< length of the window
  double step_seconds = 0;  ///< mean of its steps, without validations
  double device_idle = 0;   ///< share of the step time, 0 to 1
  watch::Bound bound = watch::Bound::compute;
  std::string advice{};
  double overhead_seconds = 0;  ///< that the window has cost the run
  std::string trace{};          ///< file, relative to the run folder; empty: none was kept
  std::vector<watch::HotSpot> hot_spots{};  ///< by self time, the longest first
  std::vector<watch::HotSpot> ranges{};     ///< parts of the step, by their whole time
  std::vector<watch::MemoryPoint> memory{};
  watch::MemoryPoint peak{};  ///< of the memory
};

namespace watch {

/// Drops the events of validations, and cuts the rest to the window.
FRUGAL_INLINE void keep_training(Trace& trace, Spans const& training) {
  std::erase_if(trace.events,
                [&](TracedEvent const& each) { return !holds(training, each.span.begin); });
  for (TracedEvent& each : trace.events) each.span.end = std::min(each.span.end, trace.span.end);
}

/// Self time in nanoseconds below which an operator costs more to call than to compute.
inline constexpr std::uint64_t short_call = 5000;

/// Share of the operators' self time that is in operators whose calls are short on average.
FRUGAL_INLINE double short_calls(Trace const& trace) {
  tallying::Tallies tallies;
  std::vector<TracedEvent const*> operators;
  for (TracedEvent const& each : trace.events) {
    if (each.where == TracedEvent::Where::op) operators.push_back(&each);
  }
  tallying::add_self_times(std::move(operators), tallies);
  std::uint64_t all = 0;
  std::uint64_t in_short = 0;
  for (auto const& [name, tally] : tallies) {
    all += tally.nanoseconds;
    if (tally.nanoseconds < short_call * tally.calls) in_short += tally.nanoseconds;
  }
  return all == 0 ? 0 : static_cast<double>(in_short) / static_cast<double>(all);
}

/// Analyses a window. The caller adds steps, files and overhead.
FRUGAL_INLINE WindowProfile analyse(Trace trace, std::size_t memory_points = 200) {
  WindowProfile found{.seconds = static_cast<double>(trace.span.length()) / 1e9};
  std::vector<MemoryPoint> const line = memory_line(trace);
  found.peak = peak_of(line);
  found.memory = thinned(line, memory_points);
  found.ranges = ranges(trace, trace.span.length());
  Spans const training = training_of(trace);
  keep_training(trace, training);
  Division division = divide(trace, training);
  division.short_calls = short_calls(trace);
  found.device_idle = division.step_time == 0 ? 0 : division.idle();
  found.bound = judge(division, trace.on_accelerator);
  found.advice = advice_for(found.bound, division, trace.on_accelerator);
  found.hot_spots = hot_spots(trace, division.step_time);
  return found;
}

/// Whether the device works a smaller share of the time than `least`.
inline bool hardly_works(WindowProfile const& found, double least) {
  return 1 - found.device_idle < least;
}

/// "aten::mm 63%".
inline std::string text_of(HotSpot const& spot) { return spot.name + " " + percent(spot.share); }

}  // namespace watch

}  // namespace frugal
