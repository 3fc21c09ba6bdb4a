// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/window_profile.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <unordered_map>

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

FRUGAL_INLINE std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::input:
      return "input";
    case Bound::compute:
      return "compute";
    case Bound::launch:
      return "launch";
    case Bound::host:
      break;
  }
  return "host";
}

FRUGAL_INLINE Spans training_of(Trace const& trace) {
  return without({trace.span}, spans_of(trace, [](TracedEvent const& each) {
                   return each.where == TracedEvent::Where::range && each.name == range::validation;
                 }));
}

FRUGAL_INLINE Division divide(Trace const& trace, Spans const& training) {
  using Where = TracedEvent::Where;
  auto const named = [&](std::string_view name) {
    return spans_of(trace, [&](TracedEvent const& each) {
      return each.where == Where::range && each.name == name;
    });
  };
  auto const at = [&](Where where) {
    return spans_of(trace, [&](TracedEvent const& each) { return each.where == where; });
  };
  Division found{.step_time = total(training)};
  if (found.step_time == 0) return found;
  auto const share = [&](Spans const& spans) {
    return static_cast<double>(total(spans)) / static_cast<double>(found.step_time);
  };
  Spans const data = named(range::data);
  Spans const operators = at(Where::op);
  // A CPU that stacks samples is not working on the step.
  Spans const busy =
      common(training, trace.on_accelerator ? at(Where::device) : without(operators, data));
  Spans const idle = without(training, busy);
  Spans const starved = common(idle, data);
  found.busy = share(busy);
  found.data = share(starved);
  // A replayed graph has no ranges: the source's own measurement, as far as the device was idle.
  double const waited = trace.waited_seconds * 1e9 / static_cast<double>(found.step_time);
  found.data = std::max(found.data, std::min(waited, found.idle()));
  if (trace.on_accelerator) found.launch = share(common(without(idle, data), operators));
  found.host = std::max(0.0, 1 - found.busy - found.data - found.launch);
  found.policies = share(common(training, named(range::policies)));
  return found;
}

FRUGAL_INLINE Bound judge(Division const& step, bool on_accelerator) {
  if (step.data >= input_from) return Bound::input;
  if (step.busy >= compute_from) {
    bool const dispatching = !on_accelerator && step.short_calls >= short_calls_from;
    return dispatching ? Bound::launch : Bound::compute;
  }
  return step.launch >= step.host && step.launch > 0 ? Bound::launch : Bound::host;
}

FRUGAL_INLINE std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%", 100 * std::clamp(share, 0.0, 9.99));
  return text;
}

FRUGAL_INLINE std::string advice_for(Bound bound, Division const& step, bool on_accelerator) {
  switch (bound) {
    case Bound::input:
      return percent(step.data) +
             " of the step waits for data. Read ahead with Loader (docs/data/loading.md), or "
             "compute slow transforms once with Cached (docs/data/cache.md).";
    case Bound::compute:
      return "The device works " + percent(step.busy) +
             " of the step. Make the work cheaper: Precision<BF16> where the device is fast in it "
             "(docs/policy/precision.md), or a device with a higher peak per dollar.";
    case Bound::launch:
      if (on_accelerator) {
        return percent(step.launch) +
               " of the step is spent launching kernels while the device is idle. Replay the step "
               "with CudaGraph (docs/policy/cuda_graph.md), or use larger batches "
               "(docs/policy/auto_batch.md).";
      }
      return percent(step.short_calls) +
             " of the operators' time is in calls of less than 5 us, about what calling one costs. "
             "Use larger batches (docs/policy/auto_batch.md).";
    case Bound::host:
      break;
  }
  if (step.policies >= step.host / 2) {
    return percent(step.policies) +
           " of the step is the policies' own work. Log, validate and save less often: "
           "Every<N> with a larger N (docs/loop.md).";
  }
  return percent(step.host) +
         " of the step is neither operators nor data. Look in the trace for host work in the "
         "module and the objective, and for item(), which waits for the device.";
}

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

namespace frugal::detail {

FRUGAL_INLINE std::string json_of(WindowProfile const& window) {
  JsonWriter out;
  auto const spots = [&](std::string_view name, std::vector<watch::HotSpot> const& all) {
    out.key(name).array();
    for (watch::HotSpot const& spot : all) {
      out.object().add("name", spot.name).add("share", spot.share);
      out.add("calls", spot.calls).add("microseconds", spot.microseconds).end();
    }
    out.end();
  };
  out.object().add("step", window.step).add("steps", window.steps);
  out.add("seconds", window.seconds).add("step_seconds", window.step_seconds);
  out.add("device_idle", window.device_idle).add("bound", watch::name_of(window.bound));
  out.add("advice", window.advice).add("overhead_seconds", window.overhead_seconds);
  out.add("trace", window.trace);
  spots("hot_spots", window.hot_spots);
  spots("ranges", window.ranges);
  out.add("peak_bytes", window.peak.bytes).add("peak_seconds", window.peak.seconds);
  out.key("memory").array();
  for (watch::MemoryPoint const& point : window.memory) {
    out.object().add("seconds", point.seconds).add("bytes", point.bytes).end();
  }
  return out.str();
}

FRUGAL_INLINE void HotSpotsFile::resume_at(std::uint64_t step) {
  windows_.clear();
  std::ifstream in(path_);
  std::string const text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  auto const file = Json::parse(text);
  Json const* const windows = file ? file->find("windows") : nullptr;
  if (windows == nullptr || !windows->is(Json::Kind::array)) return;
  std::vector<Json> const& items = windows->items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json const* const at = items[i].find("step");
    auto const made_at = at == nullptr ? std::nullopt : at->as_unsigned();
    if (!made_at || *made_at > step) continue;
    // Kept as written. The last one ends before the array does.
    std::size_t const end = i + 1 < items.size() ? items[i + 1].at() : text.rfind(']');
    std::string window = text.substr(items[i].at(), end - items[i].at());
    window.resize(window.find_last_of('}') + 1);
    if (Json::parse(window)) windows_.push_back(std::move(window));
  }
  keep(most_windows);
}

FRUGAL_INLINE bool HotSpotsFile::write() const {
  std::error_code ignored;  // what fails here fails below too
  // Only a trace that is kept has made the folder.
  std::filesystem::create_directories(path_.parent_path(), ignored);
  JsonWriter file;
  file.object().add("version", 1).key("windows").array();
  for (std::string const& each : windows_) file.on_line(0).raw(each);
  try {
    write_whole_file(path_, file.on_line(0).str("\n"), Durable::no);
    return true;
  } catch (StoreError const&) {
    return false;
  }
}

FRUGAL_INLINE void HotSpotsFile::keep(std::size_t most) {
  std::size_t const more = windows_.size() - std::min(windows_.size(), most);
  windows_.erase(windows_.begin(), windows_.begin() + static_cast<std::ptrdiff_t>(more));
}

}  // namespace frugal::detail
