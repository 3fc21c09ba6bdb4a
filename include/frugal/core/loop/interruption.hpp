// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/interrupted.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/services.hpp>

// What surrounds the loop: stops, preemptions, recoveries, errors of observers, and the agreement of
// several processes on them. A preempted run is saved and ends early, and the next start resumes it.
namespace frugal::detail {

/// The requester, if it is not a policy of this process.
inline constexpr std::string_view another_process = "another process";

/// One line on stderr for an error of `who` after the one that fit will throw.
inline constexpr auto report_further_error = [](std::string_view who,
                                                std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::exception const& what) {
    std::string_view const text = what.what();  // LibTorch's have a stack from the second line on
    std::cerr << "frugal: a further error at the end of this fit: " << who << ": "
              << text.substr(0, text.find('\n')) << '\n'
              << std::flush;
  }
};

/// Asks the policies and Settings::stop of this process whether the run must be preempted. The run
/// remembers the first requester.
template <class Context>
bool preemption_requested(Run<Context>& run) {
  auto const who = [&](std::string_view kind) { run.status.request_preemption(kind); };
  Phase phase(run);
  bool asked = run.engine->template ask<query::stop_requested>(phase, who);
  if (run.settings.stop.stop_requested()) {
    who("Settings::stop");
    asked = true;
  }
  return asked;
}

/// Aborts a validation or a dry run before one of its batches; the next start repeats it. A step is
/// always finished. Processes that train together check only at the end of a step, which they reach
/// together.
template <class Context>
void throw_if_preempted(Run<Context>& run) {
  if constexpr (!provided<service::reduce, typename Context::policies>) {
    if (preemption_requested(run)) throw Interrupted{};
  }
}

/// Emits the events at which a run may end, and ends it. All of it works on RunStatus.
template <class Context>
class Interruption {
  using Engine = typename Context::engine;
  template <class Service>
  static constexpr bool has = provided<Service, typename Context::policies>;

 public:
  explicit Interruption(Run<Context>& run) : run_(run), status_(run.status) {}

  bool stopped() const { return status_.stopped; }
  /// Emits an event that may ask to stop.
  template <class Hook, class Phase>
  void emit(Phase& phase) {
    stop_on<Hook>(run_.engine->template emit<Hook>(phase, on_verdict()));
  }

  /// Stops if the verdict of this process, or of another one, says so.
  template <class Hook>
  void stop_on(flow verdict) {
    std::string const who = std::exchange(status_.stop_requested_by, {});
    bool stops = verdict == flow::stop;
    if constexpr (!Run<Context>::divides) {
      stops = run_.reduce(Quantity::stop, stops ? 1.0 : 0.0) != 0;
    } else if constexpr (Engine::template has_own_verdicts<Hook> ||
                         Engine::template has_own_verdicts<on::validated>) {
      // Where all have the same losses, a message only for policies that ask for reasons of their
      // own. It names the one that asked: the run may go on only if that one withdraws it.
      std::string name = who.empty() ? status_.stopped_by : who;
      if (name.empty()) name = another_process;
      std::string const first =
          run_.engine->template provider<service::share>().first_of(stops ? name : std::string());
      stops = !first.empty();
      if (stops) status_.stopped_by = first;
    }
    if (!stops) return;
    status_.stopped = true;
    if (status_.stopped_by.empty()) status_.stopped_by = who.empty() ? another_process : who;
  }

  /// Emits an event at which the run may end or be preempted. If the event is interrupted, the
  /// resumed run completes it: it skips the subscribers in `completed_by`.
  template <class Hook>
  void emit_interruptible(std::vector<std::string> completed_by = {}) {
    status_.is_preempting = agreed_preemption();
    typename Hook::phase phase(run_);
    status_.current_hook = Hook::name;
    try {
      stop_on<Hook>(run_.engine->template emit_to_others<Hook>(
          completed_by, status_.current_subscriber, phase, on_verdict()));
    } catch (Interrupted const&) {
      leave_unfinished(Hook::name, std::move(completed_by));
      status_.is_preempting = true;
    } catch (LossError const&) {
      throw;  // the step was not good, and Rollback may go back to before it
    } catch (std::exception const&) {
      save_unfinished(Hook::name, std::move(completed_by));
      throw;
    }
    status_.current_hook = {};
    // The event may have taken long: a validation, a save. Several processes agree only before it.
    if constexpr (!has<service::reduce>)
      status_.is_preempting = status_.is_preempting || preemption_requested(run_);
    if (status_.is_preempting) preempt(/*has_begun=*/true);
  }

  /// Completes the event at which an earlier process was interrupted.
  void complete_unfinished() {
    Unfinished left = std::exchange(status_.unfinished, {});
    status_.validation.take_from(left.completed_by);
    if (left.hook == on::step::name) emit_interruptible<on::step>(std::move(left.completed_by));
    if (left.hook == on::epoch_end::name)
      emit_interruptible<on::epoch_end>(std::move(left.completed_by));
    status_.validation = {};  // a changed recipe may not have come to it
  }

  /// After a window that was no step, and therefore emits no event.
  void preempt_if_requested() {
    if (agreed_preemption()) preempt(/*has_begun=*/true);
  }

  /// Before the first window. The run is as it was saved, so nothing is saved.
  void preempt_before_training() {
    if (agreed_preemption()) preempt(/*has_begun=*/false);
  }

  /// Saves the run, if training has begun and a policy saves, and emits on::preempt.
  void preempt(bool has_begun) {
    using Clock = std::chrono::steady_clock;
    auto const start = Clock::now();
    status_.stopped = true;
    status_.request_preemption(another_process);
    CheckpointPhase at(run_);
    bool const saved = has_begun && at.save();
    status_.preemption_saved = saved || !has_begun;
    if (has_begun && !saved && has<service::save>)
      run_.warn("preempted, and the last steps could not be saved");
    std::chrono::duration<double> const took = Clock::now() - start;
    status_.preempted = true;
    Preemption phase(run_, has_begun, saved, took.count());
    run_.engine->template emit<on::preempt>(phase);
  }

  /// Runs `body`; after a bad loss the run continues where the recovering policy, if any, puts it.
  template <class Body>
  void with_recovery(Body&& body) {
    if constexpr (has<service::recover>) {
      try {
        body();
      } catch (LossError const& error) {
        run_.discard_window();
        CheckpointPhase at(run_);
        if (!run_.engine->template provider<service::recover>().recover(at, error)) throw;
        // The cause of the stop or preemption is ahead of the run again.
        status_.clear_stop();
      }
    } else {
      body();
    }
  }

 private:
  /// Called for each policy that asks to stop.
  auto on_verdict() {
    return [this](std::string_view kind) { status_.request_stop(kind); };
  }

  bool agreed_preemption() {
    if constexpr (Run<Context>::divides) {
      if (auto const asked = std::exchange(status_.asked_in_window, std::nullopt)) return *asked;
    }
    return run_.reduce(Quantity::stop, preemption_requested(run_) ? 1.0 : 0.0) != 0;
  }

  void leave_unfinished(std::string_view hook, std::vector<std::string> completed_by) {
    status_.validation.add_to(completed_by);
    status_.unfinished = {std::string(hook), std::move(completed_by)};
  }

  /// A subscriber has thrown, so the run ends. All state is at rest: the steps since the last save
  /// are saved, and the next start emits the event to those who have not seen it. Processes that
  /// train together do not come here together, so they cannot save.
  void save_unfinished([[maybe_unused]] std::string_view hook,
                       [[maybe_unused]] std::vector<std::string> completed_by) {
    if constexpr (has<service::save> && !has<service::reduce>) {
      // A policy that cannot save now has reported that by its own error.
      if (status_.current_subscriber == Engine::template provider_index<service::save>()) return;
      leave_unfinished(hook, std::move(completed_by));
      status_.current_hook = {};
      try {
        CheckpointPhase at(run_);
        static_cast<void>(at.save());
      } catch (std::exception const&) {
        report_further_error("the save of the last steps", std::current_exception());
      }
    }
  }

  Run<Context>& run_;
  RunStatus& status_;
};

}  // namespace frugal::detail
