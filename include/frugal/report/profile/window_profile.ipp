// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/window_profile.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal::watch {

FRUGAL_INLINE void keep_training(Trace& trace, Spans const& training) {
  std::erase_if(trace.events,
                [&](TracedEvent const& each) { return !holds(training, each.span.begin); });
  for (TracedEvent& each : trace.events) each.span.end = std::min(each.span.end, trace.span.end);
}

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

FRUGAL_INLINE WindowProfile analyse(Trace trace, std::size_t memory_points) {
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

}  // namespace frugal::watch
