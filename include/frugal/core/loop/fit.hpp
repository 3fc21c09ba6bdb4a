// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/interrupted.hpp>
#include <frugal/core/loop/consumed.hpp>
#include <frugal/core/loop/ends.hpp>
#include <frugal/core/loop/fit_parts.hpp>
#include <frugal/core/loop/measure.hpp>
#include <frugal/core/loop/passes.hpp>
#include <frugal/core/loop/preemption.hpp>
#include <frugal/core/loop/recipe_traits.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/report.hpp>
#include <frugal/data/source.hpp>

namespace frugal::detail {

/// One fit: the whole training loop. `Valid` is void without validation data.
///
///     begin, for each epoch: { for each window: { for each micro-batch: forward, backward;
///     gradients, update, step }, epoch end }, end
template <class Context, class Objective, class Train, class Valid>
class Fit final : FitParts<Context, Objective, Train, Valid> {
  using Parts = FitParts<Context, Objective, Train, Valid>;
  using Engine = typename Context::engine;
  using Traits = traits_of<Context>;
  using Parts::engine_, Parts::executor_, Parts::cursor, Parts::run_, Parts::stopper, Parts::train_,
      Parts::valid_;

  template <class Service>
  static constexpr bool has = Engine::template provides<Service>;

 public:
  using Parts::assemble, Parts::set_up_and_dry_run;
  using Parts::Parts;

  Report run() {
    auto const start = WallClock::now();
    run_.attach(engine_, *this);
    try {
      this->prepare();
      FitRun<Context> phase(run_);
      auto fit = [this] {
        if (!begin()) return;
        while (should_continue()) epoch();
        if constexpr (AdvisingSource<Train>) {
          if (std::string const text = train_.warning(); !text.empty()) run_.warn_measured(text);
        }
        end();
      };
      engine_.template surround<around::fit>(phase, fit);
    } catch (...) {
      // The caller gets the module back as if the failed step had never begun.
      run_.parameters.reset_gradients();
      throw;
    }
    std::chrono::duration<double> const spent = WallClock::now() - start;
    return report_of(run_, spent.count());
  }

 private:
  /// Every policy sees the end, also behind one that throws: Checkpoint, near the last, saves.
  void end() {
    if constexpr (Engine::template has_subscribers<on::fit_end>) {
      FitEnd<Context> phase(run_);
      auto const error = engine_.template emit_to_all<on::fit_end>(phase, report_further_error);
      if (error) std::rethrow_exception(error);
    }
  }

  /// False if the run is preempted before there was anything to train.
  bool begin() {
    // Not in prepare(): a dry run must not change the generators.
    at::manual_seed(run_.settings.seed);
    FitBegin<Context> phase(run_);
    try {
      stop_on(engine_.template emit<on::fit_begin>(phase, stopper()));
      this->settle();
    } catch (Interrupted const&) {
      preempt_run(/*has_begun=*/false);
      return false;
    }
    Ready<Context> ready(run_);
    engine_.template emit<on::ready>(ready);
    // A resumed run may have ended, or been preempted during an event.
    this->asked_to_stop_ = run_.stopped_by;
    stop_on(run_.stopped_by.empty() ? flow::proceed : flow::stop);
    with_recovery([this] {
      Unfinished left = std::exchange(run_.unfinished, {});
      if (left.hook == on::step::name)
        emit_interruptible<on::step, Step<Context>>(std::move(left.completed_by));
      if (left.hook == on::epoch_end::name) {
        emit_interruptible<on::epoch_end, EpochEnd<Context>>(std::move(left.completed_by));
      }
      // It may have been preempted at its last step, before the code that follows that step.
      if (!should_continue() && run_.counters.position != 0) {
        this->seek();
        leave_epoch();
      }
    });
    return true;
  }

  bool should_continue() const {
    return !stopped_ && run_.counters.epoch < run_.horizon.epochs &&
           run_.counters.step < run_.horizon.steps;
  }

  /// An epoch, or the rest of one. Ends early if the run is taken back after a bad loss, perhaps
  /// into an earlier epoch.
  void epoch() {
    EpochRun<Context> phase(run_);
    auto windows = [this] { train_windows(); };
    with_recovery([&] { engine_.template surround<around::epoch>(phase, windows); });
  }

  /// Runs `body`; after a bad loss the run continues where the recovering policy, if any, puts it.
  template <class Body>
  void with_recovery(Body&& body) {
    if constexpr (has<service::recover>) {
      try {
        body();
      } catch (LossError const& error) {
        run_.discard_window();
        CheckpointPhase<Context> at(run_);
        if (!engine_.template provider<service::recover>().recover(at, error)) throw;
        // The cause of the stop or preemption is ahead of the run again.
        stopped_ = false;
        run_.clear_stop();
      }
    } else {
      body();
    }
  }

  void train_windows() {
    this->seek();
    bool empty = run_.counters.position == 0;
    if (!std::exchange(run_.epoch_begun, true)) {
      // Not at the epoch's end: the checkpoint made there saves the losses.
      run_.ledger.reset();
      EpochBegin<Context> phase(run_);
      engine_.template emit<on::epoch_begin>(phase);
    }
    while (!stopped_ && run_.counters.step < run_.horizon.steps) {
      if (window()) {
        empty = false;
        continue;
      }
      if (stopped_) break;
      if (empty) refuse_empty_source("training", run_.counters.epoch);
      end_epoch();
      return;
    }
    leave_epoch();
  }

  /// At most one optimizer step. False if the epoch has no micro-batch left, or the run is stopped.
  bool window() {
    if constexpr (Engine::template has_subscribers<on::window>) {
      WindowBegin<Context> phase(run_);
      stop_on(engine_.template emit<on::window>(phase, stopper()));
      if (stopped_) return false;
      if (run_.reduce(Quantity::skip, phase.skipped() ? 1.0 : 0.0) != 0) {
        bool const passed = pass_over_window();
        if (passed) preempt_if_requested();
        return passed;
      }
    }
    StepOutcome const trained = executor_.train(train_);
    if (trained == StepOutcome::completed) emit_interruptible<on::step, Step<Context>>();
    if (trained == StepOutcome::skipped) preempt_if_requested();
    return trained != StepOutcome::nothing;
  }

  bool pass_over_window() {
    std::uint64_t samples = 0;
    bool empty = true;
    for (int k = 0; k < Traits::batches; ++k) {
      auto batch = train_.next();
      if (!batch) break;
      empty = false;
      samples += static_cast<std::uint64_t>(batch_samples(*batch));
    }
    if (empty) return false;
    run_.counters.position = Consumed<Train>(train_).after(run_.counters.position, samples);
    ++run_.counters.skipped_windows;
    return true;
  }

  /// The run has no steps left. Reads one batch ahead to see whether the last step ended the epoch.
  void leave_epoch() {
    run_.epoch_loss = run_.mean_loss();
    if (!stopped_ && !train_.next()) end_epoch();
  }

  void end_epoch() {
    run_.epoch_loss = run_.mean_loss();
    ++run_.counters.epoch;
    run_.counters.position = 0;
    run_.epoch_begun = false;
    emit_interruptible<on::epoch_end, EpochEnd<Context>>();
  }

  /// Emits an event at which the run may end or be preempted. If the event is interrupted, the
  /// resumed run completes it: it skips the subscribers in `completed_by`.
  template <class Hook, class Phase>
  void emit_interruptible(std::vector<std::string> completed_by = {}) {
    run_.is_preempting = agreed_preemption();
    Phase phase(run_);
    run_.current_hook = Hook::name;
    try {
      stop_on(engine_.template emit_to_others<Hook>(completed_by, run_.current_subscriber, phase,
                                                    stopper()));
    } catch (Interrupted const&) {
      run_.unfinished = {std::string(Hook::name), std::move(completed_by)};
      run_.is_preempting = true;
    } catch (LossError const&) {
      throw;  // the step was not good, and Rollback may go back to before it
    } catch (std::exception const&) {
      save_unfinished(Hook::name, std::move(completed_by));
      throw;
    }
    run_.current_hook = {};
    // The event may have taken long: a validation, a save. Several processes agree only before it.
    if constexpr (!has<service::reduce>)
      run_.is_preempting = run_.is_preempting || preemption_requested(run_);
    if (run_.is_preempting) preempt_run(/*has_begun=*/true);
  }

  /// A subscriber has thrown, so the run ends. All state is at rest: the steps since the last save
  /// are saved, and the next start emits the event to those who have not seen it. Processes that
  /// train together do not come here together, so they cannot save.
  void save_unfinished([[maybe_unused]] std::string_view hook,
                       [[maybe_unused]] std::vector<std::string> completed_by) {
    if constexpr (has<service::save> && !has<service::reduce>) {
      // What cannot save now has said so.
      if (run_.current_subscriber == Engine::template provider_index<service::save>()) return;
      run_.unfinished = {std::string(hook), std::move(completed_by)};
      run_.current_hook = {};
      try {
        CheckpointPhase<Context> at(run_);
        static_cast<void>(at.save());
      } catch (std::exception const&) {
        report_further_error("the save of the last steps", std::current_exception());
      }
    }
  }

  bool agreed_preemption() {
    return run_.reduce(Quantity::stop, preemption_requested(run_) ? 1.0 : 0.0) != 0;
  }

  /// After a window that was no step, and therefore emits no event.
  void preempt_if_requested() {
    if (agreed_preemption()) preempt_run(/*has_begun=*/true);
  }

  void preempt_run(bool has_begun) {
    stopped_ = true;
    preempt(run_, has_begun);
  }

  void stop_on(flow verdict) {
    std::string const who = std::exchange(this->asked_to_stop_, {});
    if (run_.reduce(Quantity::stop, verdict == flow::stop ? 1.0 : 0.0) == 0) return;
    stopped_ = true;
    if (run_.stopped_by.empty()) run_.stopped_by = who.empty() ? another_process : who;
  }
  bool stopped_ = false;
};

}  // namespace frugal::detail
