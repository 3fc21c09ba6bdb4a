// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::watch {

/// A stretch of time in nanoseconds, from `begin` to before `end`.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t length() const { return end > begin ? end - begin : 0; }
  friend bool operator==(Span const&, Span const&) = default;
};

/// Sets of time: sorted spans that neither overlap nor touch.
using Spans = std::vector<Span>;

/// The union of spans in any order, which may overlap.
Spans merged(Spans spans);

std::uint64_t total(Spans const& spans);

/// The time that is in both of two merged sets.
Spans common(Spans const& a, Spans const& b);

/// The time of the merged set `a` that is not in the merged set `b`.
Spans without(Spans const& a, Spans const& b);

/// Whether a moment is in a merged set.
bool holds(Spans const& spans, std::uint64_t moment);

/// One event of a profiled window.
struct TracedEvent {
  enum class Where : unsigned char {
    op,      ///< an operator, on the host
    range,   ///< a part of the step or a user's record_function, on the host
    device,  ///< a kernel, a copy or a fill, on an accelerator
  };

  std::string name;
  Span span{};               ///< on the clock of the profiler
  std::uint64_t thread = 0;  ///< of the host
  Where where = Where::op;
  std::uint64_t id = 0;           ///< of an operator
  std::uint64_t launched_by = 0;  ///< id of the operator that launched a device event; 0: unknown
};

/// Bytes that tensors took (above 0) or gave back.
struct MemoryChange {
  std::uint64_t at = 0;  ///< nanoseconds, on the same clock
  std::int64_t bytes = 0;
};

/// What a profiler has recorded between two optimizer steps.
struct Trace {
  Span span{};  ///< the window
  std::vector<TracedEvent> events{};
  std::vector<MemoryChange> memory{};
  bool on_accelerator = false;  ///< the step's work is done by a device, not by the host
  /// Seconds of the window that the source has waited for data, where ranges cannot tell (CudaGraph).
  double waited_seconds = 0;
};

/// The names of the ranges into which Profile divides a step.
namespace range {
inline constexpr std::string_view data = "frugal::data";
inline constexpr std::string_view forward = "frugal::forward";
inline constexpr std::string_view backward = "frugal::backward";
inline constexpr std::string_view optimizer = "frugal::optimizer";
inline constexpr std::string_view policies = "frugal::policies";
inline constexpr std::string_view validation = "frugal::validation";
inline constexpr std::string_view checkpoint = "frugal::checkpoint";
inline constexpr std::string_view step = "frugal::step";  ///< of a replayed graph
}  // namespace range

/// The union of all events for which `is` holds.
template <class Predicate>
Spans spans_of(Trace const& trace, Predicate is) {
  Spans spans;
  for (TracedEvent const& each : trace.events) {
    if (is(each)) spans.push_back(each.span);
  }
  return merged(std::move(spans));
}

/// Bytes of tensors at a moment of a window, above those at its beginning. Below 0 after a window
/// in which more was freed than taken.
struct MemoryPoint {
  double seconds = 0;  ///< since the window began
  std::int64_t bytes = 0;
};

/// The running sum of the changes, one point for each.
std::vector<MemoryPoint> memory_line(Trace const& trace);

/// The line's highest point; a point of 0 bytes for an empty line.
MemoryPoint peak_of(std::vector<MemoryPoint> const& line);

/// At most `most` points: the highest of each of as many equal parts, so that no peak is lost.
std::vector<MemoryPoint> thinned(std::vector<MemoryPoint> const& line, std::size_t most);

}  // namespace frugal::watch

namespace frugal::detail {

/// A moment as Chrome's trace format has it: microseconds since the trace's base, without the
/// rounding that a double of nanoseconds since 1970 would have.
std::string trace_moment(std::uint64_t nanoseconds, std::uint64_t base);

/// One point of the memory's curve, in the same digits whatever the program's locale is.
std::string counter_event(std::uint64_t at, std::uint64_t base, std::int64_t bytes);

/// Copies a trace that Kineto has written, and adds the memory as a counter track, which Perfetto
/// and chrome://tracing draw as a curve; Kineto's own memory events are dots. `to` appears when it
/// is whole, so that a kill leaves no part of a trace under its name. False if either file fails,
/// or the first is not such a trace.
bool copy_with_counter(std::filesystem::path const& from, std::filesystem::path const& to,
                       std::vector<watch::MemoryPoint> const& memory, std::uint64_t begin);

/// Removes what a kill has left of files that were being written: x.part, and x.part.tmp of Kineto.
void remove_parts(std::filesystem::path const& folder);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/trace.ipp>
#endif
