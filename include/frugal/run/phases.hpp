// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/run/objective.hpp>
#include <frugal/run/phase.hpp>
#include <frugal/run/run.hpp>
#include <frugal/run/scalar_ledger.hpp>
#include <frugal/run/window_phases.hpp>

namespace frugal {

// What hooks outside of windows are given, in the order of a run; and the phase of each hook.

/// Before anything has looked at the module's parameters: a policy may replace its layers.
template <class Context>
class Assembly {
 public:
  explicit Assembly(Run<Context>& run) : run_(&run) {}

  auto& module() const { return run_->module; }
  Settings const& settings() const { return run_->settings; }
  void advise(std::string const& text) const { run_->advise(text); }

 private:
  Run<Context>* run_;
};

/// Around all of a fit, from the first event to the last.
template <class Context>
struct FitRun : Phase<Context> {
  using Phase<Context>::Phase;
};

/// Before the first batch: the module is on its device, no state has been used.
template <class Context>
struct FitBegin : SafePoint<Context> {
  using SafePoint<Context>::SafePoint;

  bool validates() const { return this->run().loop->validates(); }
  void set_learning_rate_factor(double factor) { this->run().rate.factor = factor; }
  /// Runs forward and backward on some batches and undoes what they touched.
  std::vector<Check> rehearse(std::size_t batches) { return this->run().loop->rehearse(batches); }
  /// What has to be found out before the first step is found out now: a checkpoint of the beginning
  /// is to have it.
  void settle() { this->run().loop->settle(); }
  /// A file that grows with the run: a checkpoint that counts on it makes it durable first.
  void writes_to(std::filesystem::path file) { this->run().files.push_back(std::move(file)); }
  /// The means of what the objective reports beside its loss (Loss::scalars) are in the span from
  /// now on, whenever losses have been read (Step::scalars). It has to live as long as the fit.
  void follow(ScalarSpan& span) { this->run().ledger.follow(span); }
  /// Training goes on from a checkpoint at which it had taken `seconds`.
  void resumed(Resumed what, double seconds) { this->run().go_on(std::move(what), seconds); }
};

/// Every subscriber of fit_begin has been told, and a run that resumes is where it was: what is
/// here is what training goes on from.
template <class Context>
struct Ready : SafePoint<Context> {
  using SafePoint<Context>::SafePoint;
  /// See WindowBegin.
  void move_to(c10::Device device) { this->run().loop->move_to(device); }
};

/// Around the windows of an epoch, or of what is left of it, and its end.
template <class Context>
struct EpochRun : Phase<Context> {
  using Phase<Context>::Phase;
};

/// At the start of an epoch; not when a resumed run enters one in its middle.
template <class Context>
struct EpochBegin : Phase<Context> {
  using Phase<Context>::Phase;
};

/// An optimizer step is complete and counted.
template <class Context>
struct Step : SafePoint<Context> {
  using SafePoint<Context>::SafePoint;

  void set_learning_rate_factor(double factor) { this->run().rate.factor = factor; }
  /// Waits for a device if the losses are on one: at a cadence, not at every step.
  double last_loss() { return this->run().ledger.last(); }
  double mean_loss() { return this->run().mean_loss(); }
  /// The means of the objective's scalars since they were last taken from this span; may wait too.
  std::vector<ScalarSpan::Mean> scalars(ScalarSpan& span) {
    this->run().ledger.settle();
    return span.take();
  }
  /// The gradients' norm before clipping, where a policy such as ClipNorm takes it; may wait too.
  GradientNorm const& gradient_norm() const { return this->run().gradient_norm; }
  /// How fast the run is, where a policy such as Throughput measures it.
  std::optional<Speed> const& speed() const { return this->run().speed; }
  void report_speed(Speed const& speed) { this->run().speed = speed; }
  /// What was measured of the training batches, and when, where a policy such as TrainMetrics does.
  Validation const& train_metrics() const { return this->run().train_metrics; }
  void report_train_metrics(Metrics metrics) {
    Counters const& now = this->run().counters;
    this->run().train_metrics = {now.epoch, now.step, std::move(metrics)};
  }
  /// Validates now, if there is validation data, and returns what the subscribers say.
  flow validate() { return this->run().loop->validate(); }
  /// The run is left after this event: somebody asks for that (query::stop_requested), here or in
  /// another process.
  bool is_preempting() const { return this->run().is_preempting; }
};

/// Around a whole validation.
template <class Context>
struct ValidationRun : Phase<Context> {
  using Phase<Context>::Phase;
};

/// Every metric of a validation is final.
template <class Context>
struct Validated : Phase<Context> {
  Validated(Run<Context>& run, Metrics const& measured) : Phase<Context>(run), metrics(measured) {}

  Metrics const& metrics;
  void set_learning_rate_factor(double factor) { this->run().rate.factor = factor; }
};

/// An epoch is complete and counted; its losses are still in the ledger.
template <class Context>
struct EpochEnd : Step<Context> {
  using Step<Context>::Step;
  /// Of the epoch; no read, and no exchange with other processes.
  double mean_loss() const { return this->run().epoch_loss; }
};

/// The run has ended by itself or by a verdict, not by an exception.
template <class Context>
struct FitEnd : SafePoint<Context> {
  using SafePoint<Context>::SafePoint;
  std::string const& stopped_by() const { return this->run().ended_by(); }
  bool preempted() const { return this->run().preempted; }
};

/// A window's forward and backward passes did not come to their end and are made anew: who counts
/// in around_forward, on_loss or on_backward goes back to what the window before has left.
template <class Context>
struct Undo : Phase<Context> {
  using Phase<Context>::Phase;
};

/// The run is left before its end, and is to be gone on with: it has been saved, if it could be.
template <class Context>
struct Preemption : SafePoint<Context> {
  Preemption(Run<Context>& run, bool begun, bool is_saved, double took)
      : SafePoint<Context>(run), has_begun(begun), saved(is_saved), seconds_of_save(took) {}

  bool const has_begun;          ///< false: it is left before there was anything to train or save
  bool const saved;              ///< of this very moment
  double const seconds_of_save;  ///< what that took
  /// Kind of the first policy that asked for it.
  std::string const& requested_by() const { return this->run().preempted_by; }
};

/// Something has happened to the run itself: a resume, a return to an earlier state, whatever a
/// policy has recorded (Phase::record). Perhaps in the middle of another hook.
template <class Context>
struct Recorded : Phase<Context> {
  Recorded(Run<Context>& run, Event const& what) : Phase<Context>(run), event(what) {}

  Event const& event;  ///< one of Phase::events(), told in their order
};

}  // namespace frugal
