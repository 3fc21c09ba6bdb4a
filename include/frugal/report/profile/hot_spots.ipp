// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/hot_spots.hpp>

#include <frugal/inline.hpp>

#include <string_view>
#include <unordered_map>
#include <utility>

namespace frugal::watch::tallying {

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

}  // namespace frugal::watch::tallying

namespace frugal::watch {

FRUGAL_INLINE std::vector<HotSpot> hot_spots(Trace const& trace, std::uint64_t step_time,
                                             std::size_t most) {
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

FRUGAL_INLINE std::vector<HotSpot> ranges(Trace const& trace, std::uint64_t step_time,
                                          std::size_t most) {
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
