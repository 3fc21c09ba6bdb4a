// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/report/profile/trace.hpp>

namespace frugal::watch {

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/memory_line.ipp>
#endif
