// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/phase.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/run/window_phases.hpp>

namespace frugal {

// The arguments of hooks outside of windows, in the order of a run, and the phase of each hook.

/// Before anything reads the module's parameters: a policy may replace its layers.
struct ModuleSetup {
  explicit ModuleSetup(RunState& run) : run_(&run) {}

  torch::nn::Module& module() const { return run_->root; }
  /// See Phase.
  template <class M>
  M& module_as() const {
    return detail::module_as<M>(run_->root);
  }
  Settings const& settings() const { return run_->settings; }
  void warn(std::string const& text) const { run_->warn(text); }
  /// See ModuleHold.
  void hold(std::vector<at::Tensor> const& tensors) const { run_->hold.hold(tensors); }
  /// The module begins on this device, instead of Settings::device; the policy moves the run later
  /// (WindowBegin::move_to). SettingsError if another policy has named another device.
  void begin_on(c10::Device device) { run_->begin_on(device); }

 private:
  RunState* run_;
};

/// Around a whole fit, from the first event to the last.
struct FitRun : Phase {
  using Phase::Phase;
  using Phase::run_state;
  /// See CheckpointPhase. Outside of the fit's events nothing can be saved.
  RunState& run_state() { return run(); }
  /// In a run that processes divide: the optimizer updates these in place of the parameters. Null:
  /// the parameters. Their gradients are set when a window is joined.
  void update_parts(ParameterParts const* parts) { run().parts = parts; }
};

/// Before the first batch: the module is on its device, no state has been used.
struct FitBegin : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;

  bool validates() const { return run().loop->validates(); }
  /// A setting that must have the same bits in all processes that train together: nothing else would
  /// notice a difference where each updates a part of the weights.
  void compare_in_processes(std::string name, double value) {
    if (run().facts.divides) {
      // All bits of it, in the same text whatever the locale of a process is.
      run().settings_to_compare.emplace_back(std::move(name), detail::general(value, 17));
    }
  }
  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor) { run().rate.set_factor(factor, run().counters); }
  /// For optimizers: the first parameter group's own learning rate, for loggers.
  void report_learning_rate(double own) { run().rate.groups = {{.own = own}}; }
  /// The same of all groups. If there are several, loggers show each by its name.
  void report_learning_rates(std::vector<GroupRate> groups) {
    run().rate.groups = std::move(groups);
  }
  /// Runs forward and backward on some batches, and undoes the effects.
  std::vector<Check> dry_run(std::size_t batches) { return run().loop->dry_run(batches); }
  /// Before the first step, when all policies have begun: measures some batches of each validation
  /// source and forgets the results. Errors that a validation would throw are thrown then.
  void try_validation(std::size_t batches) { run().validation_trial = batches; }
  /// Runs deferred set-up (the AutoBatch search) now, so that the step-0 checkpoint includes it.
  void finish_set_up() { run().loop->finish_set_up(); }
  /// Called once, when a run that is resumed is restored (`run_state().resumed` says so), and before
  /// anything is saved.
  void when_restored(std::function<void()> then) { run().when_restored.push_back(std::move(then)); }
  /// This policy skips every window with a bad loss (Gradients::skip_step), as one with a bad
  /// gradient: a loss that is NaN or infinite is no error then, and is in no mean.
  void leave_bad_losses() { run().ledger.leave_bad_losses(); }
  /// Registers a file that grows with the run: a checkpoint that refers to it makes it durable
  /// first.
  void writes_to(std::filesystem::path file) { run().files.push_back(std::move(file)); }
  /// From now on the span has the means of the objective's scalars (Loss::scalars), whenever losses
  /// have been read (Step::scalars). It must live as long as the fit.
  void follow(ScalarSpan& span) { run().ledger.follow(span); }
  /// Training continues from a checkpoint made after `seconds` of training.
  void resumed(Resumed what, double seconds) { run().resume_from(std::move(what), seconds); }
};

/// Every subscriber of fit_begin has been called, and a resumed run is restored: training continues
/// from this state.
struct Ready : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;
  /// See WindowBegin.
  void move_to(c10::Device device) { run().loop->move_to(device); }
  /// Whether a policy of this kind has stopped the run, in an earlier process.
  bool stopped_by(std::string_view kind) const { return run().status.stopped_by == kind; }
  /// The reason of that stop is gone: the run continues, like one whose Settings::epochs were raised.
  void withdraw_stop() { run().status.stopped_by.clear(); }
  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor) { run().rate.set_factor(factor, run().counters); }
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
  void set_learning_rate_factor(double factor) { run().rate.set_factor(factor, run().counters); }
  /// Waits for the device if the losses are on one: call it at a cadence, not at every step.
  double last_loss() { return run().ledger.last(); }
  double mean_loss() { return run().mean_loss(); }
  /// The means of the objective's scalars since they were last taken from this span; may wait too.
  std::vector<ScalarSpan::Mean> scalars(ScalarSpan& span) {
    run().ledger.read_pending();
    return span.take();
  }
  /// The gradients' norm before clipping, if a policy such as ClipNorm computes it; may wait too.
  GradientNorm const& gradient_norm() const { return run().gradient_norm; }
  /// The training speed, if a policy such as Throughput measures it.
  std::optional<Speed> const& speed() const { return run().speed; }
  void report_speed(Speed const& speed) { run().speed = speed; }
  /// Seconds that the run has waited for training data; nothing if the source does not measure it.
  std::optional<double> waited_for_data() const { return run().loop->waited_for_data(); }
  /// Metrics of the training batches, and their step, from a policy such as TrainMetrics.
  Validation const& train_metrics() const { return run().train_metrics; }
  void report_train_metrics(Metrics metrics) {
    Counters const& now = run().counters;
    run().train_metrics = {now.epoch, now.step, std::move(metrics)};
  }
  /// Validates now, if there is validation data, and returns the subscribers' verdict.
  flow validate() { return run().loop->validate(); }
  /// Whether the run is preempted after this event: a policy requests it (query::stop_requested),
  /// here or in another process.
  bool is_preempting() const { return run().status.is_preempting; }
};

/// Around a whole validation.
struct ValidationRun : Phase {
  using Phase::Phase;
  /// Its batches, of all sources; nothing if a source does not know its size.
  std::optional<std::uint64_t> batches() const { return run().loop->validation_batches(); }
};

/// All metrics of a validation are final.
struct Validated : Phase {
  Validated(RunState& run, Metrics const& measured) : Phase(run), metrics(measured) {}

  Metrics const& metrics;
  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor) { run().rate.set_factor(factor, run().counters); }
};

/// An epoch is complete and counted; its losses are still in the ledger.
struct EpochEnd : Step {
  using Step::Step;
  /// The epoch's mean loss. No device read, and no exchange with other processes.
  double mean_loss() const { return run().epoch_loss; }
};

/// The run has ended by itself or by a verdict, not by an exception.
struct FitEnd : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;
  std::string const& stopped_by() const { return run().status.ended_by(); }
  bool preempted() const { return run().status.preempted; }
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
  std::string const& requested_by() const { return run().status.preempted_by; }
};

/// Something happened to the run itself: a resume, a return to an earlier state, or any event that
/// a policy recorded (Phase::record). May come in the middle of another hook.
struct Recorded : Phase {
  Recorded(RunState& run, Event const& what) : Phase(run), event(what) {}

  Event const& event;  ///< one of Phase::events(), delivered in their order
};

}  // namespace frugal
