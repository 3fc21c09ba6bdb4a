// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/loop/executor.hpp>
#include <frugal/core/loop/fit_operations.hpp>
#include <frugal/core/loop/interruption.hpp>
#include <frugal/core/loop/passes.hpp>
#include <frugal/core/run/ends.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/report.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/surprises.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal::detail {

/// One fit: the whole training loop, from its first event to its last. `Valid` is void without
/// validation data.
///
/// The functions follow in the order of a run: fit, epoch, window. passes.hpp continues with the
/// micro-batches of a window and the update; interruption.hpp has what may end a run early.
template <class Context, class Objective, class Train, class Valid>
class Fit {
  using Engine = typename Context::engine;
  using Strategy = strategy_of<typename Context::policies>;
  using WindowPasses = Passes<Context, Objective, Train>;
  using Executor = executor_of<WindowPasses>;

 public:
  template <class Policies>
  Fit(typename Context::module_type& module, Objective& objective, Settings const& settings,
      Policies const& policies, Train& train, std::add_pointer_t<Valid> valid)
      : train_(train),
        valid_(valid),
        facts_(Context::facts_of(policies)),
        engine_(policies, facts_),
        run_(module, settings,
             detail::horizon_of(settings, train, static_cast<std::uint64_t>(facts_.batches)),
             facts_, Context::metrics_of(policies)),
        passes_(run_, objective, train),
        executor_(passes_),
        operations_(run_, passes_, executor_, train, valid),
        interruption_(run_) {}

  Report run() {
    auto const start = WallClock::now();
    run_.progress.start_clock();
    std::optional<MemoryMeter> memory;
    before_fit(/*dry=*/false);
    attach();
    if constexpr (Engine::has_ranks) {
      if (!run_.is_first()) engine_.mute();
    }
    try {
      set_up_module();
      memory.emplace(run_.settings.device);
      FitRun phase(run_);
      engine_.template surround<around::fit>(phase, [this] { fit(); });
    } catch (...) {
      run_.hold.put_back();
      // The caller gets the module back as if the failed step had never begun.
      run_.parameters.reset_gradients();
      throw;
    }
    run_.hold.put_back();
    std::chrono::duration<double> const spent = WallClock::now() - start;
    return report_of(run_, spent.count(), memory->read());
  }

  /// Only the slots are set up: they have state to save, whereas observers would write files. The
  /// end of this object puts back what the run holds of the module.
  std::vector<Check> set_up_and_dry_run(std::size_t batches) {
    before_fit(/*dry=*/true);
    attach();
    try {
      assemble();
      set_up_module();
      FitBegin phase(run_);
      engine_.template emit_to_slots<on::fit_begin>(phase);
      return operations_.dry_run(batches);
    } catch (c10::Error const& error) {
      return {{"set-up", false, error.what_without_backtrace()}};
    } catch (Interrupted const&) {
      return {{"time", false, run_.control.preempted_by() + " asks to preempt the run"}};
    } catch (std::exception const& error) {
      return {{"set-up", false, error.what()}};
    }
  }

  /// Calls on_module, which may replace layers. Runs once, at the first call.
  void assemble() {
    if (std::exchange(assembled_, true)) return;
    ModuleSetup phase(run_);
    engine_.template emit<on::module>(phase);
    if constexpr (Engine::template has_subscribers<on::module>) {
      run_.parameters = Parameters::of(run_.root);
    }
  }

 private:
  void attach() { run_.attach(engine_, operations_, Strategy::processes(engine_)); }
  void before_fit([[maybe_unused]] bool dry) {
    if constexpr (Engine::template provides<service::before_fit>) {
      engine_.template provider<service::before_fit>().before_fit(dry);
    }
  }

  /// Puts the module on the device where the run begins.
  void set_up_module() {
    assemble();
    prepare(run_);
    // A source that copies ahead needs the target device.
    if constexpr (requires { train_.follow(run_.device); }) train_.follow(run_.device);
    if constexpr (requires { valid_->follow(run_.device); }) {
      if (valid_ != nullptr) valid_->follow(run_.device);
    }
  }

  // ---- a fit ------------------------------------------------------------------------------------

  // [begin fit]
  void fit() {
    if (!begin()) return;
    while (!interruption_.stopped() && run_.progress.has_steps_left()) {
      EpochRun phase(run_);
      interruption_.with_recovery(
          [&] { engine_.template surround<around::epoch>(phase, [this] { epoch(); }); });
    }
    if constexpr (AdvisingSource<Train>) {
      if (std::string const text = train_.warning(); !text.empty())
        run_.observed.warn_measured(text);
    }
    end();
  }
  // [end fit]

  // [begin begin]
  /// False if the run is preempted before there was anything to train.
  bool begin() {
    run_.require_whole_weights();
    // Not in set_up_module(): a dry run must not change the generators.
    at::manual_seed(run_.settings.seed);
    if (!begin_policies()) return false;
    take_over_stop();
    interruption_.with_recovery([this] { complete_last_event(); });
    preempt_before_first_window();
    stalls_.begin(run_.device, run_.counters().step);
    return true;
  }
  // [end begin]

  /// Policies set themselves up, and a run that is resumed is restored. False if it is preempted meanwhile.
  bool begin_policies() {
    FitBegin phase(run_);
    try {
      emit<on::fit_begin>(phase);
      operations_.finish_set_up();
    } catch (Interrupted const&) {
      interruption_.preempt(/*has_begun=*/false);
      return false;
    }
    Ready ready(run_);
    engine_.template emit<on::ready>(ready);
    return true;
  }

  /// A resumed run may have ended.
  void take_over_stop() {
    std::string const who = run_.agreed_stop_of_checkpoint();
    run_.control.forget_stop_request();
    if (!who.empty()) run_.control.ask(End::stop, who);
    interruption_.stop_on(who.empty() ? flow::proceed : flow::stop, own_verdicts<on::fit_begin>);
  }

  /// A resumed run may have been preempted during an event, or at its last step, before the code that follows
  /// that step.
  void complete_last_event() {
    interruption_.complete_unfinished();
    bool const goes_on = !interruption_.stopped() && run_.progress.has_steps_left();
    if (!goes_on && run_.progress.is_within_epoch()) {
      seek_to_run(run_, train_);
      leave_epoch();
    }
  }

  /// A request of the time before the first window, and a run that is resumed where it must end again.
  void preempt_before_first_window() {
    if (interruption_.stopped() || !run_.progress.has_steps_left()) return;
    interruption_.preempt_before_training();
    if (interruption_.stopped() && run_.progress.is_within_epoch())
      run_.observed.set_epoch_loss(run_.mean_loss());
  }

  /// Every policy sees the end, also after one that throws: Checkpoint must save.
  void end() {
    if constexpr (Engine::template has_subscribers<on::fit_end>) {
      FitEnd phase(run_);
      auto const error = engine_.template emit_to_all<on::fit_end>(phase, report_further_error);
      if (error) std::rethrow_exception(error);
    }
  }

  // ---- an epoch ---------------------------------------------------------------------------------

  // [begin epoch]
  /// An epoch, or the rest of one. Ends early if the run is taken back after a bad loss, perhaps
  /// into an earlier epoch.
  void epoch() {
    seek_to_run(run_, train_);
    bool empty = !run_.progress.is_within_epoch();
    if (run_.progress.begin_epoch()) {
      // Not at the epoch's end: the checkpoint made there saves the losses.
      run_.losses.reset();
      EpochBegin phase(run_);
      engine_.template emit<on::epoch_begin>(phase);
    }
    while (!interruption_.stopped() && run_.progress.may_step()) {
      if (window()) {
        empty = false;
        continue;
      }
      if (interruption_.stopped()) break;
      if (empty) refuse_empty_source("training", run_.counters().epoch);
      end_epoch();
      return;
    }
    leave_epoch();
  }
  // [end epoch]

  /// The run has no steps left. Reads one batch ahead to see whether the last step ended the epoch.
  void leave_epoch() {
    run_.observed.set_epoch_loss(run_.mean_loss());
    if (!interruption_.stopped() && !has_another_batch(train_)) end_epoch();
  }

  // [begin end_epoch]
  void end_epoch() {
    run_.observed.set_epoch_loss(run_.mean_loss());
    run_.progress.end_epoch();
    interruption_.emit(run_.links.events().epoch_end);
  }
  // [end end_epoch]

  // ---- a window ---------------------------------------------------------------------------------

  // [begin window]
  /// At most one optimizer step. False if the epoch has no micro-batch left, or the run is stopped
  /// before it.
  bool window() {
    begin_window(train_);
    if constexpr (Engine::template has_subscribers<on::window>) {
      WindowBegin phase(run_);
      emit<on::window>(phase);
      if (interruption_.stopped()) return false;
      if (Strategy::template Window<Context>::agreed(run_, phase.skipped()))
        return pass_over_window();
    }
    StepOutcome const trained = executor_.train(train_);
    if (trained == StepOutcome::completed) {
      interruption_.emit(run_.links.events().step);
      if (run_.counters().step >= stalls_.next()) [[unlikely]]
        look_for_stalls();
    }
    if (trained == StepOutcome::skipped) interruption_.preempt_if_requested();
    return trained != StepOutcome::nothing;
  }
  // [end window]

  /// Threads that others keep from working.
  void look_for_stalls() {
    std::string const found = stalls_.look(run_.counters().step);
    if (found.empty()) return;
    run_.observed.warn_measured(found);
    if (run_.is_first()) say_warning(found);
  }

  bool pass_over_window() {
    std::uint64_t samples = 0;
    bool empty = true;
    for (int k = 0; k < run_.batches(); ++k) {
      auto batch = train_.next();
      if (!batch) break;
      empty = false;
      samples += static_cast<std::uint64_t>(batch_samples(*batch));
    }
    if constexpr (WindowedSource<Train>) empty = train_.window_batches() == 0;
    if (empty) return false;
    run_.progress.pass_over_window(position_after(train_, run_.counters().position, samples));
    interruption_.preempt_if_requested();
    return true;
  }

  /// Whether a policy may ask for the end at the event in this process alone.
  template <class Hook>
  static constexpr bool own_verdicts =
      Engine::template has_own_verdicts<Hook> || Engine::template has_own_verdicts<on::validated>;
  /// Emits an event that may ask to stop.
  template <class Hook, class Phase>
  void emit(Phase& phase) {
    interruption_.stop_on(engine_.template emit<Hook>(phase, interruption_.on_verdict()),
                          own_verdicts<Hook>);
  }

  Train& train_;
  std::add_pointer_t<Valid> valid_;
  RecipeFacts facts_;
  Engine engine_;
  Run<Context> run_;
  WindowPasses passes_;
  Executor executor_;
  FitOperations<WindowPasses, Executor, Train, Valid> operations_;
  Interruption interruption_;
  StallWatch stalls_;
  bool assembled_ = false;
};

}  // namespace frugal::detail
