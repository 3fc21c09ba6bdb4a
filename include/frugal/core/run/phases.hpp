// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/run/check.hpp>
#include <frugal/core/run/gradient_norm.hpp>
#include <frugal/core/run/learning_rate.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/phase.hpp>
#include <frugal/core/run/scalars.hpp>
#include <frugal/core/run/speed.hpp>
#include <frugal/core/run/window_phases.hpp>

namespace frugal::detail {
class ModuleHold;
}  // namespace frugal::detail

namespace frugal {

// The arguments of hooks outside of windows, in the order of a run, and the phase of each hook.

/// Before anything reads the module's parameters: a policy may replace its layers.
struct ModuleSetup {
  explicit ModuleSetup(RunState& run) : run_(&run) {}

  torch::nn::Module& module() const;
  /// See Phase.
  template <class M>
  M& module_as() const {
    return detail::module_as<M>(module());
  }
  Settings const& settings() const;
  void warn(std::string const& text) const;
  /// See ModuleHold.
  void hold(std::vector<at::Tensor> const& tensors) const;
  /// Parts that steps train in turns, which the policy gives by what is returned.
  detail::ModuleHold& take_turns(std::vector<std::vector<at::Tensor>> parts) const;
  /// The module begins on this device, instead of Settings::device; the policy moves the run later
  /// (WindowBegin::move_to). SettingsError if another policy has named another device.
  void begin_on(c10::Device device);

 private:
  RunState* run_;
};

/// Around a whole fit, from the first event to the last.
struct FitRun : Phase {
  using Phase::Phase;
  using Phase::run_state;
  /// See CheckpointPhase. Outside of the fit's events nothing can be saved.
  RunState& run_state();
  /// After the fit's events: whether it was preempted, and the step whose weights a policy has restored.
  bool preempted() const;
  std::optional<std::uint64_t> restored_step() const;
  /// In a run that processes divide: the optimizer updates these in place of the parameters. Null:
  /// the parameters. Their gradients are set when a window is joined.
  void update_parts(ParameterParts const* parts);
};

/// Before the first batch: the module is on its device, no state has been used.
struct FitBegin : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;

  bool validates() const;
  /// A setting that must have the same bits in all processes that train together: nothing else would
  /// notice a difference where each updates a part of the weights. With `on_resume`, a run that goes on with
  /// another value than its checkpoint was saved with says so.
  void compare_in_processes(std::string name, double value, bool on_resume = true);
  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor);
  /// For optimizers: the first parameter group's own learning rate, for loggers.
  void report_learning_rate(double own);
  /// The same of all groups. If there are several, loggers show each by its name.
  void report_learning_rates(std::vector<GroupRate> groups);
  /// The first epochs draw from a part of the data alone, so what they measure says little of the run.
  void begin_easily(std::uint64_t epochs);
  /// Runs forward and backward on some batches, and undoes the effects.
  std::vector<Check> dry_run(std::size_t batches);
  /// Before the first step, when all policies have begun: measures some batches of each validation
  /// source and forgets the results. Errors that a validation would throw are thrown then.
  void try_validation(std::size_t batches);
  /// Runs deferred set-up (the AutoBatch search) now, so that the step-0 checkpoint includes it.
  void finish_set_up();
  /// Called once, when a run that is resumed is restored (`run_state().progress.resumed()` says so), and before
  /// anything is saved.
  void when_restored(std::function<void()> then);
  /// This policy skips every window with a bad loss (Gradients::skip_step), as one with a bad
  /// gradient: a loss that is NaN or infinite is no error then, and is in no mean.
  void leave_bad_losses();
  /// This policy multiplies losses, and divides the gradients by the same before on_gradients.
  void scale_losses_by(std::function<double()> scale);
  /// Registers a file that grows with the run: a checkpoint that refers to it makes it durable
  /// first.
  void writes_to(std::filesystem::path file);
  /// From now on the span has the means of the objective's scalars (Loss::scalars), whenever losses
  /// have been read (Step::scalars). It must live as long as the fit.
  void follow(ScalarSpan& span);
  /// Training continues from a checkpoint made after `seconds` of training.
  void resumed(Resumed what, double seconds);
};

/// Every subscriber of fit_begin has been called, and a resumed run is restored: training continues
/// from this state.
struct Ready : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;
  /// See WindowBegin.
  void move_to(c10::Device device);
  /// Whether a policy of this kind has stopped the run, in an earlier process.
  bool stopped_by(std::string_view kind) const;
  /// The reason of that stop is gone: the run continues, like one whose Settings::epochs were raised.
  void withdraw_stop();
  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor);
  /// See FitBegin::begin_easily.
  std::uint64_t easy_epochs() const;
};

/// Around the windows of an epoch, or the rest of one, and its end.
struct EpochRun : Phase {
  using Phase::Phase;
};

/// At the start of an epoch; not when a resumed run enters one in the middle.
struct EpochBegin : Phase {
  using Phase::Phase;
};

/// An optimizer step is complete and counted.
struct Step : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;

  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor);
  /// Waits for the device if the losses are on one: call it at a cadence, not at every step.
  double last_loss();
  double mean_loss();
  /// The means of the objective's scalars since they were last taken from this span; may wait too.
  std::vector<ScalarSpan::Mean> scalars(ScalarSpan& span);
  /// The gradients' norm before clipping, if a policy such as ClipNorm computes it; may wait too.
  GradientNorm const& gradient_norm() const;
  /// The training speed, if a policy such as Throughput measures it.
  std::optional<Speed> const& speed() const;
  void report_speed(Speed const& speed);
  /// Seconds that the run has waited for training data; nothing if the source does not measure it.
  std::optional<double> waited_for_data() const;
  /// Metrics of the training batches, and their step, from a policy such as TrainMetrics.
  Validation const& train_metrics() const;
  void report_train_metrics(Metrics metrics);
  /// Validates now, if there is validation data, and returns the subscribers' verdict. A stop ends the run after this
  /// event, whether the caller returns it or not. Weights are measured once:
  /// if the last validation measured the current ones, this call measures nothing, no subscriber is called, and the
  /// verdict is that of the last validation. Code that has changed the weights itself first calls
  /// `run_state().observed.weights_have_changed()`.
  flow validate();
  /// Whether the run is preempted after this event: a policy requests it (query::stop_requested),
  /// here or in another process.
  bool is_preempting() const;
};

/// Around a whole validation.
struct ValidationRun : Phase {
  using Phase::Phase;
  /// Its batches, of all sources; nothing if a source does not know its size.
  std::optional<std::uint64_t> batches() const;
};

/// All metrics of a validation are final.
struct Validated : Phase {
  Validated(RunState& run, Metrics const& measured) : Phase(run), metrics(measured) {}

  Metrics const& metrics;
  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor);
};

/// An epoch is complete and counted; its losses are still in the accumulator.
struct EpochEnd : Step {
  using Step::Step;
  /// The epoch's mean loss. No device read, and no exchange with other processes.
  double mean_loss() const;
};

/// The run has ended by itself or by a verdict, not by an exception.
struct FitEnd : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;
  std::string const& stopped_by() const;
  bool preempted() const;
};

/// A window was aborted and will be retried: restore counters that around_forward, on_loss or
/// on_backward changed to their values after the previous window.
struct WindowRetry : Phase {
  using Phase::Phase;
};

/// The run is preempted, to be resumed later; it has been saved, if possible.
struct Preemption : CheckpointPhase {
  Preemption(RunState& run, bool begun, bool is_saved, double took)
      : CheckpointPhase(run), has_begun(begun), saved(is_saved), seconds_of_save(took) {}

  bool const has_begun;          ///< false: preempted before there was anything to train or save
  bool const saved;              ///< whether this very moment is saved
  double const seconds_of_save;  ///< duration of that save
  /// Kind of the first policy that requested it.
  std::string const& requested_by() const;
};

/// Something happened to the run itself: a resume, a return to an earlier state, or any event that
/// a policy recorded (Phase::record). May come in the middle of another hook.
struct Recorded : Phase {
  Recorded(RunState& run, Event const& what) : Phase(run), event(what) {}

  Event const& event;  ///< one of Phase::events(), delivered in their order
};

/// A checkpoint is whole on disk. In the first of several processes; with Async at a step soon after the write
/// has ended. May come in the middle of another hook.
struct Saved : Phase {
  Saved(RunState& run, std::filesystem::path const& where, std::uint64_t at)
      : Phase(run), folder(where), step(at) {}

  std::filesystem::path const& folder;  ///< of the checkpoint
  std::uint64_t step;                   ///< whose state it has
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/phases.ipp>
#endif
