// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>

#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// A process whose launcher was killed would go on alone, and keep the run's lock and a GPU: it gets a
/// SIGTERM, as from the launcher. Those of torchrun have its agent for their parent.
inline void end_with_launcher(World const& world) {
  if (world.launcher == "torchrun") ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/// The processes that the launcher has started, joined once.
inline std::shared_ptr<Communicator> communicator_of_environment() {
  // Not destroyed: its threads would outlive what they use.
  static auto const& one = []() -> auto& {
    World const world = World::from_environment();
    end_with_launcher(world);
    auto& joined = *new std::shared_ptr<Communicator>(Communicator::join(world));
    std::atexit([] { communicator_of_environment()->close(); });
    return joined;
  }();
  return one;
}

/// Those that a policy's member `with` names, or of the environment.
inline Communicator& communicator_of(std::shared_ptr<Communicator> const& with) {
  return with ? *with : *communicator_of_environment();
}

/// What two fits must not use at one time: dimensions of a Grid share all that they have.
inline void const* exchanges_of(Communicator& processes) {
  return processes.everyone() ? processes.everyone().get() : &processes;
}

[[noreturn]] inline void refuse_share(World const& world, int micro_batches, char const* name,
                                      std::string why, char const* multiple) {
  throw SettingsError({.what = std::to_string(world.size) + " processes cannot share windows of " +
                               std::to_string(micro_batches) + " micro-batches",
                       .where = name,
                       .why = std::move(why),
                       .fix = std::string("Use Accumulate<N> with ") + multiple +
                              "; N is the number of micro-batches of a step in all processes."});
}

/// Those of a window that a rank trains at the same times as the others: rank, rank + W, and so on.
inline MicroBatches striped_share(World const& world, MicroBatches const& equal) {
  return {.first = static_cast<std::uint64_t>(world.rank),
          .count = equal.count,
          .stride = static_cast<std::uint64_t>(world.size)};
}

/// Those of a window that a rank trains. SettingsError unless each has the same number.
inline MicroBatches equal_share(World const& world, int micro_batches, char const* name,
                                char const* multiple = "a multiple of the number of processes") {
  int const each = micro_batches / world.size;
  if (each * world.size != micro_batches) {
    refuse_share(world, micro_batches, name, "each must have the same number of them", multiple);
  }
  return {.first = static_cast<std::uint64_t>(world.rank * each),
          .count = static_cast<std::uint64_t>(each)};
}

/// An equal share that is a node of the tree of PairwiseSum. `scatters`: the processes train theirs at the
/// same times.
inline MicroBatches exact_share(World const& world, int micro_batches, bool scatters = false,
                                char const* name = "Replicate<Exact>") {
  constexpr char const* multiple = "N = processes x 1, 2, 4 or 8";
  if (scatters) {
    if (!std::has_single_bit(static_cast<unsigned>(world.size))) {
      refuse_share(
          world, micro_batches, "Replicate<Exact, Shard<States, Grads>>",
          "gradients are added up over the processes after each micro-batch, and the order "
          "of the sums is fixed for 1, 2, 4, 8 and so on",
          "1, 2, 4 or 8 processes, or Shard<States>");
    }
    return striped_share(world, equal_share(world, micro_batches, name));
  }
  MicroBatches const own = equal_share(world, micro_batches, name, multiple);
  if (world.size != 1 && !std::has_single_bit(own.count)) {
    refuse_share(world, micro_batches, name,
                 "each would have " + std::to_string(own.count) +
                     ", and the order of the sums is fixed for 1, 2, 4, 8 and so on",
                 multiple);
  }
  return own;
}

}  // namespace frugal::detail
