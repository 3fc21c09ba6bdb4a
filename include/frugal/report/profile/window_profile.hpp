// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
void keep_training(Trace& trace, Spans const& training);

/// Self time in nanoseconds below which an operator costs more to call than to compute.
inline constexpr std::uint64_t short_call = 5000;

/// Share of the operators' self time that is in operators whose calls are short on average.
double short_calls(Trace const& trace);

/// Analyses a window. The caller adds steps, files and overhead.
WindowProfile analyse(Trace trace, std::size_t memory_points = 200);

/// Whether the device works a smaller share of the time than `least`.
inline bool hardly_works(WindowProfile const& found, double least) {
  return 1 - found.device_idle < least;
}

/// "aten::mm 63%".
inline std::string text_of(HotSpot const& spot) { return spot.name + " " + percent(spot.share); }

}  // namespace watch

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/window_profile.ipp>
#endif
