// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/watch.hpp>

#include <frugal/inline.hpp>

#include <sys/resource.h>

#include <chrono>

namespace frugal::detail {

FRUGAL_INLINE Clocks Clocks::now() {
  std::chrono::duration<double> const wall = std::chrono::steady_clock::now().time_since_epoch();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  auto const seconds = [](timeval const& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {wall.count(), seconds(used.ru_utime) + seconds(used.ru_stime)};
}

FRUGAL_INLINE void Clocks::add(Clocks const& from, Clocks const& to) {
  wall += to.wall - from.wall;
  processor += to.processor - from.processor;
}

}  // namespace frugal::detail
