// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

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
void add_self_times(std::vector<TracedEvent const*> events, Tallies& tallies);

/// Device time under the operator that launched it; the kernel's own name where that is unknown.
void add_device_times(std::vector<TracedEvent> const& events, Tallies& tallies);

std::vector<HotSpot> sorted(Tallies const& tallies, std::uint64_t of, std::size_t most);

}  // namespace tallying

/// The events that took longest, by self time: on the CPU operators and ranges, with an accelerator
/// its own time by the operator that launched it. `step_time` in nanoseconds.
std::vector<HotSpot> hot_spots(Trace const& trace, std::uint64_t step_time, std::size_t most = 10);

/// The ranges by their whole time: the parts of a step, and a user's own record_function.
std::vector<HotSpot> ranges(Trace const& trace, std::uint64_t step_time, std::size_t most = 20);

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/hot_spots.ipp>
#endif
