// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>

#include <frugal/core/run/durations.hpp>
#include <frugal/policy/options.hpp>

namespace frugal {

/// An option of Profile: its ranges are NVTX ranges too, for Nsight.
struct Nvtx {};

namespace detail::option {

/// How long a window of Profile is: Seconds<3>, Steps<20>.
struct window_length {
  template <class O>
  static constexpr bool has = is_wall_time<O> || is_step_count<O>;
};
struct nvtx {
  template <class O>
  static constexpr bool has = std::same_as<O, Nvtx>;
};

}  // namespace detail::option

namespace detail {

template <class Length>
constexpr std::chrono::duration<double> window_seconds() {
  if constexpr (is_wall_time<Length>) {
    return std::chrono::duration<double>(Length::seconds);
  } else {
    return std::chrono::duration<double>(std::numeric_limits<double>::infinity());
  }
}

/// Steps<N> is exact; a window of some seconds ends earlier if its trace would become too large to
/// open.
template <class Length>
constexpr std::uint64_t window_steps() {
  if constexpr (is_step_count<Length>) {
    return Length::count;
  } else {
    return 100;
  }
}

}  // namespace detail

}  // namespace frugal
