// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>
#include <frugal/report/profile/trace.hpp>

namespace frugal::watch {

/// An operator or a range, and the time that it took.
struct HotSpot {
  std::string name;
  double share = 0;  ///< of the step time of the window, 0 to 1; threads and streams may overlap
  std::uint64_t calls = 0;
  double microseconds = 0;
};

namespace tallying {

struct Tally {
  std::uint64_t calls = 0;
  std::uint64_t nanoseconds = 0;
};
using Tallies = std::map<std::string, Tally, std::less<>>;

/// Self time of each name on the host: its spans without the spans nested in them, per thread.
FRUGAL_INLINE void add_self_times(std::vector<TracedEvent const*> events, Tallies& tallies) {
  std::sort(events.begin(), events.end(), [](TracedEvent const* a, TracedEvent const* b) {
    if (a->thread != b->thread) return a->thread < b->thread;
    if (a->span.begin != b->span.begin) return a->span.begin < b->span.begin;
    return a->span.end > b->span.end;  // the outer one first
  });
  std::vector<std::pair<TracedEvent const*, Tally*>> open;
  for (TracedEvent const* each : events) {
    while (!open.empty() && (open.back().first->thread != each->thread ||
                             open.back().first->span.end <= each->span.begin)) {
      open.pop_back();
    }
    Tally& tally = tallies[each->name];
    ++tally.calls;
    tally.nanoseconds += each->span.length();
    if (!open.empty()) {
      // Only the part within the parent counts of an event that outlasts it.
      std::uint64_t const end = std::min(each->span.end, open.back().first->span.end);
      std::uint64_t const inner = Span{each->span.begin, end}.length();
      open.back().second->nanoseconds -= std::min(inner, open.back().second->nanoseconds);
    }
    open.emplace_back(each, &tally);
  }
}

/// Device time under the operator that launched it; the kernel's own name where that is unknown.
FRUGAL_INLINE void add_device_times(std::vector<TracedEvent> const& events, Tallies& tallies) {
  std::unordered_map<std::uint64_t, std::string const*> operators;
  for (TracedEvent const& each : events) {
    if (each.where == TracedEvent::Where::op && each.id != 0) operators[each.id] = &each.name;
  }
  for (TracedEvent const& each : events) {
    if (each.where != TracedEvent::Where::device) continue;
    auto const launcher = operators.find(each.launched_by);
    bool const known = each.launched_by != 0 && launcher != operators.end();
    Tally& tally = tallies[known ? *launcher->second : each.name];
    ++tally.calls;
    tally.nanoseconds += each.span.length();
  }
}

FRUGAL_INLINE std::vector<HotSpot> sorted(Tallies const& tallies, std::uint64_t of,
                                          std::size_t most) {
  std::vector<HotSpot> all;
  for (auto const& [name, tally] : tallies) {
    auto const spent = static_cast<double>(tally.nanoseconds);
    all.push_back({name, of == 0 ? 0 : spent / static_cast<double>(of), tally.calls, spent / 1e3});
  }
  std::sort(all.begin(), all.end(), [](HotSpot const& a, HotSpot const& b) {
    return a.microseconds != b.microseconds ? a.microseconds > b.microseconds : a.name < b.name;
  });
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace tallying

/// The events that took longest, by self time: on the CPU operators and ranges, with an accelerator
/// its own time by the operator that launched it. `step_time` in nanoseconds.
FRUGAL_INLINE std::vector<HotSpot> hot_spots(Trace const& trace, std::uint64_t step_time,
                                             std::size_t most = 10) {
  tallying::Tallies tallies;
  if (trace.on_accelerator) {
    tallying::add_device_times(trace.events, tallies);
  } else {
    std::vector<TracedEvent const*> host;
    for (TracedEvent const& each : trace.events) {
      if (each.where != TracedEvent::Where::device) host.push_back(&each);
    }
    tallying::add_self_times(std::move(host), tallies);
  }
  return tallying::sorted(tallies, step_time, most);
}

/// The ranges by their whole time: the parts of a step, and a user's own record_function.
FRUGAL_INLINE std::vector<HotSpot> ranges(Trace const& trace, std::uint64_t step_time,
                                          std::size_t most = 20) {
  tallying::Tallies tallies;
  for (TracedEvent const& each : trace.events) {
    if (each.where != TracedEvent::Where::range) continue;
    tallying::Tally& tally = tallies[each.name];
    ++tally.calls;
    tally.nanoseconds += each.span.length();
  }
  return tallying::sorted(tallies, step_time, most);
}

}  // namespace frugal::watch
