// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/early_stop.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void BestWeights::refuse_parts() {
  throw SettingsError(
      {.what = "the best weights cannot be kept in memory",
       .where = "EarlyStop",
       .why = "each process has its part of the weights alone",
       .fix = "Take Params out of Shard<States, Grads, Params>, or set restore_best of "
              "EarlyStop to false: with Checkpoint<KeepBest<...>> the best are in a file."});
}

FRUGAL_INLINE void BestWeights::take(RunState& run, double value) {
  kept_.take(run, Part::module);
  value_ = value;
  step_ = run.counters().step;
  empty_ = false;
}

FRUGAL_INLINE void BestWeights::restore(RunState& run) {
  kept_.restore(run, Part::module);
  run.progress.set_restored_step(step_);
}

FRUGAL_INLINE void require_grace(int grace, std::uint64_t easy_epochs) {
  if (static_cast<std::uint64_t>(grace) >= easy_epochs) return;
  throw SettingsError(
      {.what = "the first " + std::to_string(easy_epochs) +
               " epochs draw from the easy samples alone, and EarlyStop watches them",
       .where = "EarlyStop::grace_epochs",
       .why =
           "it is " + std::to_string(grace) + ", and would judge a run that has not seen its data",
       .fix = "Set it to " + std::to_string(easy_epochs) +
              ", or write EarlyStop<Patience<3>, GraceEpochs<" + std::to_string(easy_epochs) +
              ">>."});
}

}  // namespace frugal::detail
