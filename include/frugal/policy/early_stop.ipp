// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/early_stop.hpp>

#include <frugal/base/number_text.hpp>
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

FRUGAL_INLINE std::string grace_outlook(int grace, RunLimits const& horizon) {
  std::uint64_t const epochs = horizon.begun_epochs();
  if (grace == 0 || epochs > static_cast<std::uint64_t>(grace)) return {};
  return "its grace period is " + count_text(static_cast<std::uint64_t>(grace), "epoch") +
         ", and the run ends with its epoch " + std::to_string(epochs) +
         ": it watches no validation";
}

FRUGAL_INLINE void require_early_stop(int patience, int grace, double min_delta) {
  counted(patience, "EarlyStop::patience");
  bool const is_grace = grace < 0;
  if (!is_grace && min_delta >= 0) return;
  throw SettingsError({.what = is_grace ? "grace_epochs is " + std::to_string(grace)
                                        : "min_delta is " + general(min_delta, 6),
                       .where = "EarlyStop",
                       .why = is_grace ? "it counts epochs"
                                       : "min_delta is a distance, for metrics in both directions",
                       .fix = "Give 0 or more."});
}

FRUGAL_INLINE void warn_of_no_best(FitRun& phase, int grace) {
  std::string text = "EarlyStop: no validation ";
  if (grace > 0) {
    text +=
        "after the grace period of " + count_text(static_cast<std::uint64_t>(grace), "epoch") + ' ';
  }
  phase.warn(text + "gave a number, so the module keeps its last weights");
}

}  // namespace frugal::detail
