// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <memory>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/world.hpp>

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

}  // namespace frugal::detail
