// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/report/profile/spans.hpp>

namespace frugal::watch {

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

}  // namespace frugal::watch
