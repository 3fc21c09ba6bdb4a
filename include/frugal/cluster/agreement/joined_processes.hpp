// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/core/run/services.hpp>

namespace frugal::detail {

/// The processes that the launcher has started, joined once.
std::shared_ptr<Communicator> communicator_of_environment();

/// Those that a policy's member `with` names, or of the environment.
inline Communicator& communicator_of(std::shared_ptr<Communicator> const& with) {
  return with ? *with : *communicator_of_environment();
}

/// What two fits must not use at one time: dimensions of a Grid share all that they have.
inline void const* exchanges_of(Communicator& processes) {
  return processes.everyone() ? processes.everyone().get() : &processes;
}

/// Those of a window that a rank trains at the same times as the others: rank, rank + W, and so on.
inline MicroBatches striped_share(World const& world, MicroBatches const& equal) {
  return {.first = static_cast<std::uint64_t>(world.rank),
          .count = equal.count,
          .stride = static_cast<std::uint64_t>(world.size)};
}

/// Those of a window that a rank trains. SettingsError unless each has the same number.
MicroBatches equal_share(World const& world, int micro_batches, char const* name,
                         char const* multiple = "a multiple of the number of processes");

/// An equal share that is a node of the tree of PairwiseSum. `scatters`: the processes train theirs at the
/// same times.
MicroBatches exact_share(World const& world, int micro_batches, bool scatters = false,
                         char const* name = "Replicate<Exact>");

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/agreement/joined_processes.ipp>
#endif
