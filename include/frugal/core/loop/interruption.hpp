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

#include <frugal/base/function_ref.hpp>
#include <frugal/core/compose/interrupted.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/policy_events.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/inline.hpp>

// What surrounds the loop: stops, preemptions, recoveries, errors of observers, and the agreement of
// several processes on them. A preempted run is saved and ends early, and the next start resumes it.
namespace frugal::detail {

/// The requester, if it is not a policy of this process.
inline constexpr std::string_view another_process = "another process";

/// One line on stderr for an error of `who` after the one that fit will throw.
FRUGAL_INLINE void report_further_error(std::string_view who, std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::exception const& what) {
    std::string_view const text = what.what();  // LibTorch's have a stack from the second line on
    std::cerr << "frugal: a further error at the end of this fit: " << who << ": "
              << text.substr(0, text.find('\n')) << '\n'
              << std::flush;
  }
}

/// Asks the policies and Settings::stop of this process whether the run must be preempted. The run
/// remembers the first requester.
FRUGAL_INLINE bool preemption_requested(RunState& run) {
  auto const who = [&run](std::string_view kind) { run.status.request_preemption(kind); };
  bool asked = run.events_of_policies.ask(run, who);
  if (run.settings.stop.stop_requested()) {
    who("Settings::stop");
    asked = true;
  }
  return asked;
}

/// Aborts a validation or a dry run before one of its batches; the next start repeats it. A step is
/// always finished. Processes that train together check only at the end of a step, which they reach
/// together.
FRUGAL_INLINE void throw_if_preempted(RunState& run) {
  if (!run.facts.agrees && preemption_requested(run)) throw Interrupted{};
}

/// Ends a run at the events at which that is possible. All of it works on RunStatus, and knows the recipe by
/// RunState alone.
class Interruption {
 public:
  explicit Interruption(RunState& run) : run_(run), status_(run.status) {}

  bool stopped() const { return status_.stopped; }
  /// For each policy that asks to stop: what an event gives it.
  auto on_verdict() {
    return [this](std::string_view kind) { status_.request_stop(kind); };
  }

  /// Stops if the verdict of this process, or of another one, says so. `own_verdicts`: a policy may have asked
  /// in this process alone.
  FRUGAL_INLINE void stop_on(flow verdict, bool own_verdicts) {
    // Most events end here, and make no string.
    if (verdict != flow::stop && run_.others == nullptr) return status_.stop_requested_by.clear();
    std::string const who = std::exchange(status_.stop_requested_by, {});
    bool stops = verdict == flow::stop;
    if (!run_.facts.divides) {
      stops = run_.reduce(Quantity::stop, stops ? 1.0 : 0.0) != 0;
    } else if (own_verdicts) {
      // Where all have the same losses, a message only for policies that ask for reasons of their
      // own. It names the one that asked: the run may go on only if that one withdraws it.
      std::string name = who.empty() ? status_.stopped_by : who;
      if (name.empty()) name = another_process;
      std::string const first = run_.others->first_of(stops ? name : std::string());
      stops = !first.empty();
      if (stops) status_.stopped_by = first;
    }
    if (!stops) return;
    status_.stopped = true;
    if (status_.stopped_by.empty()) status_.stopped_by = who.empty() ? another_process : who;
  }

  /// Emits an event at which the run may end or be preempted. If the event is interrupted, the
  /// resumed run completes it: it skips the subscribers in `completed_by`.
  FRUGAL_INLINE void emit(PolicyEvents::Interruptible const& event,
                          std::vector<std::string> completed_by = {}) {
    status_.is_preempting = agreed_preemption();
    status_.current_hook = event.name;
    try {
      stop_on(run_.events_of_policies.emit(event, run_, completed_by, status_.current_subscriber,
                                           on_verdict()),
              event.own_verdicts);
    } catch (Interrupted const&) {
      leave_unfinished(event.name, std::move(completed_by));
      status_.is_preempting = true;
    } catch (LossError const&) {
      throw;  // the step was not good, and Rollback may go back to before it
    } catch (std::exception const&) {
      save_unfinished(event.name, std::move(completed_by));
      throw;
    }
    status_.current_hook = {};
    // The event may have taken long: a validation, a save. Several processes agree only before it.
    if (!run_.facts.agrees) {
      status_.is_preempting = status_.is_preempting || preemption_requested(run_);
    }
    if (status_.is_preempting) preempt(/*has_begun=*/true);
  }

  /// Completes the event at which an earlier process was interrupted.
  FRUGAL_INLINE void complete_unfinished() {
    Unfinished left = std::exchange(status_.unfinished, {});
    status_.validation.take_from(left.completed_by);
    PolicyEvents const& events = run_.events_of_policies;
    if (left.hook == events.step.name) emit(events.step, std::move(left.completed_by));
    if (left.hook == events.epoch_end.name) emit(events.epoch_end, std::move(left.completed_by));
    status_.validation = {};  // a changed recipe may not have come to it
  }

  /// After a window that was no step, and therefore emits no event.
  FRUGAL_INLINE void preempt_if_requested() {
    if (agreed_preemption()) preempt(/*has_begun=*/true);
  }

  /// Before the first window. The run is as it was saved, so nothing is saved.
  FRUGAL_INLINE void preempt_before_training() {
    if (agreed_preemption()) preempt(/*has_begun=*/false);
  }

  /// Saves the run, if training has begun and a policy saves, and emits on::preempt.
  FRUGAL_INLINE void preempt(bool has_begun) {
    using Clock = std::chrono::steady_clock;
    auto const start = Clock::now();
    status_.stopped = true;
    status_.request_preemption(another_process);
    CheckpointPhase at(run_);
    bool const saved = has_begun && at.save();
    status_.preemption_saved = saved || !has_begun;
    if (has_begun && !saved && run_.saver != nullptr)
      run_.warn("preempted, and the last steps could not be saved");
    std::chrono::duration<double> const took = Clock::now() - start;
    status_.preempted = true;
    Preemption phase(run_, has_begun, saved, took.count());
    run_.events_of_policies.emit_preempt(phase);
  }

  /// Runs `body`; after a bad loss the run continues where the recovering policy, if any, puts it.
  FRUGAL_INLINE void with_recovery(FunctionRef<void()> body) {
    if (!run_.events_of_policies.recovers()) return body();
    try {
      body();
    } catch (LossError const& error) {
      run_.discard_window();
      CheckpointPhase at(run_);
      if (!run_.events_of_policies.recover(at, error)) throw;
      // The cause of the stop or preemption is ahead of the run again.
      status_.clear_stop();
    }
  }

 private:
  FRUGAL_INLINE bool agreed_preemption() {
    if (run_.facts.divides) {
      if (auto const asked = std::exchange(status_.asked_in_window, std::nullopt)) return *asked;
    }
    return run_.reduce(Quantity::stop, preemption_requested(run_) ? 1.0 : 0.0) != 0;
  }

  FRUGAL_INLINE void leave_unfinished(std::string_view hook,
                                      std::vector<std::string> completed_by) {
    status_.validation.add_to(completed_by);
    status_.unfinished = {std::string(hook), std::move(completed_by)};
  }

  /// A subscriber has thrown, so the run ends. All state is at rest: the steps since the last save
  /// are saved, and the next start emits the event to those who have not seen it. Processes that
  /// train together do not come here together, so they cannot save.
  FRUGAL_INLINE void save_unfinished(std::string_view hook, std::vector<std::string> completed_by) {
    if (run_.saver == nullptr || run_.facts.agrees) return;
    // A policy that cannot save now has reported that by its own error.
    if (status_.current_subscriber == run_.events_of_policies.saver) return;
    leave_unfinished(hook, std::move(completed_by));
    status_.current_hook = {};
    try {
      CheckpointPhase at(run_);
      static_cast<void>(at.save());
    } catch (std::exception const&) {
      report_further_error("the save of the last steps", std::current_exception());
    }
  }

  RunState& run_;
  RunStatus& status_;
};

}  // namespace frugal::detail
