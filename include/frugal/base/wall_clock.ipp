// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/wall_clock.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE WallClock::time_point WallClock::now() noexcept {
  timespec time{};
  ::clock_gettime(id(), &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

FRUGAL_INLINE char const* WallClock::shortcoming() noexcept {
  return id() == CLOCK_MONOTONIC ? "this system has no clock that goes on while the machine is "
                                   "suspended: time in suspension is not counted"
                                 : nullptr;
}

}  // namespace frugal
