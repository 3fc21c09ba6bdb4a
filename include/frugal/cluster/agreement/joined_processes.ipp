// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/agreement/joined_processes.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/prctl.h>

#include <bit>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

namespace frugal::detail {

/// A process whose launcher was killed would go on alone, and keep the run's lock and a GPU: it gets a
/// SIGTERM, as from the launcher. Those of torchrun have its agent for their parent.
FRUGAL_INLINE void end_with_launcher(World const& world) {
  if (world.launcher == "torchrun") ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

FRUGAL_INLINE std::shared_ptr<Communicator> communicator_of_environment() {
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

[[noreturn]] FRUGAL_INLINE void refuse_share(World const& world, int micro_batches,
                                             char const* name, std::string why,
                                             char const* multiple) {
  throw SettingsError({.what = std::to_string(world.size) + " processes cannot share windows of " +
                               std::to_string(micro_batches) + " micro-batches",
                       .where = name,
                       .why = std::move(why),
                       .fix = std::string("Use Accumulate<N> with ") + multiple +
                              "; N is the number of micro-batches of a step in all processes."});
}

FRUGAL_INLINE MicroBatches equal_share(World const& world, int micro_batches, char const* name,
                                       char const* multiple) {
  int const each = micro_batches / world.size;
  if (each * world.size != micro_batches) {
    refuse_share(world, micro_batches, name, "each must have the same number of them", multiple);
  }
  return {.first = static_cast<std::uint64_t>(world.rank * each),
          .count = static_cast<std::uint64_t>(each)};
}

FRUGAL_INLINE MicroBatches exact_share(World const& world, int micro_batches, bool scatters,
                                       char const* name) {
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
