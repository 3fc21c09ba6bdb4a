// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/memory_line.hpp>

#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::watch {

FRUGAL_INLINE std::vector<MemoryPoint> memory_line(Trace const& trace) {
  std::vector<MemoryChange> changes = trace.memory;
  // At one moment what is given back first: the order is unknown, and no peak is invented.
  std::sort(changes.begin(), changes.end(), [](MemoryChange const& a, MemoryChange const& b) {
    return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
  });
  std::vector<MemoryPoint> line;
  std::int64_t now = 0;
  for (MemoryChange const& each : changes) {
    now += each.bytes;
    line.push_back({static_cast<double>(Span{trace.span.begin, each.at}.length()) / 1e9, now});
  }
  return line;
}

FRUGAL_INLINE MemoryPoint peak_of(std::vector<MemoryPoint> const& line) {
  auto const highest = std::max_element(
      line.begin(), line.end(),
      [](MemoryPoint const& a, MemoryPoint const& b) { return a.bytes < b.bytes; });
  return highest == line.end() ? MemoryPoint{} : *highest;
}

FRUGAL_INLINE std::vector<MemoryPoint> thinned(std::vector<MemoryPoint> const& line,
                                               std::size_t most) {
  if (most == 0 || line.size() <= most) return line;
  std::vector<MemoryPoint> few;
  for (std::size_t part = 0; part < most; ++part) {
    std::size_t const from = part * line.size() / most;
    std::size_t const to = (part + 1) * line.size() / most;
    few.push_back(peak_of({line.begin() + static_cast<std::ptrdiff_t>(from),
                           line.begin() + static_cast<std::ptrdiff_t>(to)}));
  }
  return few;
}

}  // namespace frugal::watch
