// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/cluster/communicator.hpp>

namespace frugal {

/// How measure_link measures.
struct LinkMeasurement {
  int rounds = 5;            ///< of each size; their median counts
  double long_enough = 0.2;  ///< seconds of the large sum
  std::int64_t most_bytes = std::int64_t{1}
                            << 28;  ///< of the large sum, which takes as much memory
  c10::Device device = c10::kCPU;   ///< of the tensors: NCCL's links for a GPU
};

namespace detail {

/// Seconds of the slowest rank for a sum of `bytes`: the same number in all ranks.
double seconds_of_sum(Communicator& all, std::int64_t bytes, LinkMeasurement const& how);

/// The link by which `small` bytes take `small_seconds` and `large` bytes `large_seconds`, summed over
/// so many processes.
inline LinkSpeed link_of_sums(int processes, std::int64_t small, double small_seconds,
                              std::int64_t large, double large_seconds) {
  double const others = processes - 1;
  return {.latency = small_seconds / (2 * others),
          .bytes_per_second = 2 * others / processes * static_cast<double>(large - small) /
                              (large_seconds - small_seconds)};
}

}  // namespace detail

/// Latency and rate of the links between the processes, as a ring all-reduce meets them, for
/// plan::plan_ranks. All ranks call it at the same time, and get the same numbers: a sum of one
/// number takes 2 (W - 1) latencies; a sum that is made larger until it takes `long_enough` takes
/// 2 (W - 1) / W x bytes / rate more.
///
/// Both have in them what the processors need for sending and adding up. Measure with as many ranks
/// a machine as will train, while nothing else uses the links.
///
/// Cost    about 20 times `long_enough`.
/// Errors  SettingsError for a world of one, which has no link, for less than one round, and for a
///         time of 0 or less; ClusterError if a large sum takes no longer than a small one, and those
///         of the communicator.
/// Source  Hockney, "The communication challenge for MPP" (1994), for the model; Patarasuk and Yuan
///         (2009), for the ring.
LinkSpeed measure_link(Communicator& all, LinkMeasurement const& how = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/measure_link.ipp>
#endif
