// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/ends.hpp>

#include <frugal/core/run/surprises.hpp>

#include <frugal/core/libtorch/devices.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/inline.hpp>

#include <torch/nn/module.h>

#include <cstdint>
#include <limits>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE void prepare(RunState& run) {
  require_parameters(run.parameters);
  require_device(run.settings.device);
  require_device(run.device);
  if (run.settings.epochs == 0U || run.settings.steps == 0U) {
    run.warn(std::string(run.settings.epochs == 0U ? "Settings::epochs" : "Settings::steps") +
             " is 0, so the run trains nothing; set 1 or more, or call evaluate(source) to measure "
             "without training");
  }
  // More come of a negative number, which converts without a word of the compiler.
  constexpr std::uint64_t most_epochs = std::numeric_limits<std::int64_t>::max();
  if (!run.settings.steps && run.settings.epochs.value_or(1) > most_epochs) {
    run.warn("Settings::epochs is " + std::to_string(*run.settings.epochs) + ", which is " +
             std::to_string(static_cast<std::int64_t>(*run.settings.epochs)) +
             " as a signed number: the run ends only if a policy or a signal ends it; give the "
             "number of epochs, or Settings::steps");
  }
  put_on(run.device, run.root);
  run.hold.train();
  run.parameters.reset_gradients();
  run.window.gradients().reserve(run.parameters.size());
}

FRUGAL_INLINE Report report_of(RunState const& run, double seconds, MemoryPeaks const& memory) {
  return {.epochs = run.counters().epoch,
          .steps = run.counters().step,
          .samples = run.counters().sample,
          .seconds = seconds,
          .train_loss = run.observed.epoch_loss(),
          .stopped_by = run.control.ended_by(),
          .validations = run.observed.validations(),
          .warnings = run.observed.warnings(),
          .resumed = run.progress.resumed(),
          .preempted = run.control.preempted(),
          .non_finite_windows = run.counters().non_finite_windows,
          .seconds_before = run.progress.seconds_before(),
          .train_metrics = run.observed.train_metrics().metrics,
          .unsaved = run.control.unsaved(),
          .interrupted = run.control.interrupted(),
          .restored_step = run.progress.restored_step(),
          .validation_count = run.observed.validation_count(),
          .memory = memory,
          .options = run.settings.options,
          .preempted_by = run.control.preempted() ? run.control.preempted_by() : std::string()};
}

FRUGAL_INLINE void advise_of_earlier_fit(Report& report, bool repeats) {
  if (report.resumed) {
    if (report.preempted || report.steps != report.resumed->step) return;
    std::string const step = std::to_string(report.steps);
    if (!report.stopped_by.empty()) {
      report.warnings.push_back(
          report.stopped_by + " had stopped the run at step " + step +
          ", so this fit trained nothing, and more epochs or steps would not: raise its patience "
          "or limit, or remove it (a changed type needs ChangedRecipe::KeepWhatFits in "
          "Checkpoint::changed_recipe), or begin another run with these weights "
          "(Settings::run_dir, Checkpoint::from and Resume::Weights)");
      say_warning(report.warnings.back());
      return;
    }
    report.warnings.push_back("the run was at its last step, " + step +
                              ", so this fit trained nothing: raise Settings::epochs or steps to "
                              "continue it, or set another Settings::run_dir, such as "
                              "fr::fresh(\"runs/x\")");
    say_warning(report.warnings.back());
  } else if (repeats) {
    report.warnings.emplace_back(
        "this trainer was fitted before with this seed: the weights continued, and the optimizer, "
        "the schedule, the order of the data and the random numbers began again. Use Checkpoint "
        "and "
        "raise Settings::epochs to continue a run, or set another Settings::seed");
  }
}

}  // namespace frugal::detail
