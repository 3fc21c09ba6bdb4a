// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/spot/signals.hpp>

#include <frugal/inline.hpp>

#include <signal.h>

#include <cstdlib>

namespace frugal::detail {

FRUGAL_INLINE PreemptionSignals::PreemptionSignals(bool dry) : dry_(dry) {
  handlers().join([](SignalHandlers& all) {
    flag().store(0);
    all.take(SIGTERM, on_signal);
    // sbatch --signal=B:USR1@120 asks for it; elsewhere SIGUSR1 is the program's own.
    if (std::getenv("SLURM_JOB_ID") != nullptr) all.take(SIGUSR1, on_signal);
  });
}

}  // namespace frugal::detail
