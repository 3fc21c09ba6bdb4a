// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <frugal/libtorch/devices.hpp>
#include <frugal/run/any_run.hpp>
#include <frugal/run/failure.hpp>
#include <frugal/run/report.hpp>

// What comes before a run's first event and after its last one.
namespace frugal::detail {

/// Puts the module on `start_device`, into training mode and without gradients. ModuleError without
/// parameters to train, DeviceError for a settings' device that is not there.
inline void prepare(AnyRun& run, c10::Device start_device) {
  require_parameters(run.parameters);
  require_device(run.settings.device);
  run.device = start_device;
  if (run.parameters.tensors.front().device() != run.device) run.root.to(run.device);
  if (!run.root.is_training()) run.root.train();
  run.parameters.reset_gradients();
  run.gradients.reserve(run.parameters.size());
}

/// `seconds`: that this fit took, in this process.
inline Report report_of(AnyRun const& run, double seconds) {
  return {.epochs = run.counters.epoch,
          .steps = run.counters.step,
          .samples = run.counters.sample,
          .seconds = seconds,
          .train_loss = run.epoch_loss,
          .stopped_by = run.ended_by(),
          .validations = run.validations,
          .advice = run.advice,
          .resumed = run.resumed,
          .preempted = run.preempted,
          .skipped = run.counters.skipped,
          .seconds_before = run.seconds_before,
          .train_metrics = run.train_metrics.metrics,
          .unsaved = run.unsaved};
}

}  // namespace frugal::detail
