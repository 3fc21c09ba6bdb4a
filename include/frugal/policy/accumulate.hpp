// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Gradient accumulation: N micro-batches make one optimizer step, which equals the step of one big
/// batch.
///
/// Lever   memory: an effective batch larger than memory holds.
/// Cost    nothing per step; one multiplication of the gradients if a window is ragged or its
///         micro-batches have unequal weights.
/// State   none: windows do not outlast a step.
/// Errors  N < 1 does not compile; SettingsError if it is given at run time.
///
///     Accumulate<8>                       // fixed: the loop has the number as a constant
///     Accumulate<>{.micro_batches = n}    // the same, with the number known when the run begins
///
/// The loop reads `micro_batches`. Each micro-batch's backward starts from its share of the window
/// (loss weight over window weight), so that the sum of the gradients is that of the weighted mean,
/// also in a last window with fewer micro-batches. Schedules and cadences count optimizer steps.
template <auto... N>
struct Accumulate {
  static_assert(
      sizeof...(N) < 2,
      "frugal: Accumulate<N> takes one number, the micro-batches per optimizer step. Write "
      "Accumulate<8>.");
};

template <auto N>
struct Accumulate<N> {
  static_assert(N >= 1,
                "frugal: Accumulate<N>: N is the number of micro-batches per optimizer step, at "
                "least 1. Write Accumulate<1>, or leave Accumulate out.");
  using kind = kinds::accumulate;
  using listens = list<>;

  static constexpr About about{Term::memory, "nothing for a full window of equal weights"};

  static constexpr int micro_batches = N;
};

template <>
struct Accumulate<> {
  using kind = kinds::accumulate;
  using listens = list<>;

  static constexpr About about = Accumulate<1>::about;

  int micro_batches = 1;  ///< per optimizer step
};

/// Defined in policy/accumulate/split.hpp.
template <>
struct Accumulate<Auto>;

template <>
struct null_policy<kinds::accumulate> {
  using type = Accumulate<1>;
};

}  // namespace frugal
