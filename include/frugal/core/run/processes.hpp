// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace frugal {

/// The values that processes training one model together exchange, and how they are combined.
enum class Quantity {
  stop,           ///< a verdict, 0 or 1: the maximum
  skip,           ///< skip this window, 0 or 1: the maximum
  overflow,       ///< a gradient is not finite, 0 or 1: the maximum
  window_weight,  ///< weight of a window's losses: the sum
  loss,           ///< of an epoch or a validation, sums and weights: the sum
  metric,         ///< a metric's counts: the sum
};

/// How many processes train together, and on how many machines.
struct Processes {
  unsigned count = 1;
  unsigned machines = 1;
  /// Whether they train neighbouring micro-batches of a window at one time.
  bool in_rounds = false;
};

/// One of the equal shares into which processes divide a work.
struct EqualShare {
  unsigned index = 0;
  unsigned count = 1;
};

/// Micro-batches of a window, numbered from 0: those that one process trains, every `stride`-th.
struct MicroBatches {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 1;
};

/// True for quantities combined by maximum; all others are summed. NaN in one process gives NaN in
/// all.
constexpr bool is_verdict(Quantity what) {
  return what == Quantity::stop || what == Quantity::skip || what == Quantity::overflow;
}

}  // namespace frugal
