// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include <frugal/core/run/counters.hpp>

// Lengths of time and of training as types, for options of policies.
namespace frugal {

template <int N>
struct Seconds {
  static_assert(N >= 1, "frugal: Seconds<0> is over before it begins. Write Seconds<1> or more.");
  static constexpr double seconds = N;
};

template <int N>
struct Minutes {
  static_assert(N >= 1, "frugal: Minutes<0> is over before it begins. Write Minutes<1> or more.");
  static constexpr double seconds = 60.0 * N;
};

template <int N>
struct Hours {
  static_assert(N >= 1, "frugal: Hours<0> is over before it begins. Write Hours<1> or more.");
  static constexpr double seconds = 3600.0 * N;
};

/// Until N epochs are complete.
template <std::uint64_t N>
struct Epochs {
  static_assert(N >= 1, "frugal: Epochs<0> is over before it begins. Write Epochs<1> or more.");
  static constexpr std::uint64_t count = N;
  static constexpr bool over(Counters const& now, std::uint64_t after = N) {
    return now.epoch >= after;
  }
};

/// Until N optimizer steps are complete.
template <std::uint64_t N>
struct Steps {
  static_assert(N >= 1, "frugal: Steps<0> is over before it begins. Write Steps<1> or more.");
  static constexpr std::uint64_t count = N;
  static constexpr bool over(Counters const& now, std::uint64_t after = N) {
    return now.step >= after;
  }
};

namespace detail {

template <class T>
inline constexpr bool is_wall_time = false;
template <int N>
inline constexpr bool is_wall_time<Seconds<N>> = sizeof(Seconds<N>) != 0;  // and N is looked at
template <int N>
inline constexpr bool is_wall_time<Minutes<N>> = sizeof(Minutes<N>) != 0;
template <int N>
inline constexpr bool is_wall_time<Hours<N>> = sizeof(Hours<N>) != 0;

template <class Limit>
constexpr std::chrono::duration<double> wall_time() {
  if constexpr (is_wall_time<Limit>) {
    return std::chrono::duration<double>(Limit::seconds);
  } else {
    return {};
  }
}

template <class T>
inline constexpr bool is_early_phase = false;
template <std::uint64_t N>
inline constexpr bool is_early_phase<Epochs<N>> = sizeof(Epochs<N>) != 0;  // and N is looked at
template <std::uint64_t N>
inline constexpr bool is_early_phase<Steps<N>> = sizeof(Steps<N>) != 0;

template <class T>
inline constexpr bool is_step_count = false;
template <std::uint64_t N>
inline constexpr bool is_step_count<Steps<N>> = sizeof(Steps<N>) != 0;

}  // namespace detail

}  // namespace frugal
