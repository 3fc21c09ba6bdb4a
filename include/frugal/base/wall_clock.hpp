// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <chrono>

namespace frugal {

/// Wall time since the machine has booted, its suspensions included: a suspended machine is billed
/// all the same, and std::chrono::steady_clock stands still in it. Nobody can set it. Limits,
/// bills and intervals of a run are in this time.
///
/// Source  clock_gettime(2): CLOCK_BOOTTIME, and CLOCK_MONOTONIC on a system without it.
struct WallClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WallClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
  static double seconds() {
    return std::chrono::duration<double>(now().time_since_epoch()).count();
  }

  /// A sentence where this system has no clock that goes on in a suspension; else null.
  static char const* shortcoming() noexcept;

 private:
  static ::clockid_t id() noexcept {
#ifdef CLOCK_BOOTTIME
    static ::clockid_t const known = [] {
      timespec ignored{};
      return ::clock_gettime(CLOCK_BOOTTIME, &ignored) == 0 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
    }();
    return known;
#else
    return CLOCK_MONOTONIC;
#endif
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/base/wall_clock.ipp>
#endif
