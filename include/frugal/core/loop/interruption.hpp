// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/function_ref.hpp>
#include <frugal/core/run/run_links.hpp>
#include <frugal/core/run/run_state.hpp>

// What surrounds the loop: stops, preemptions, recoveries, errors of observers, and the agreement of
// several processes on them. A preempted run is saved and ends early, and the next start resumes it.
namespace frugal::detail {

/// One line on stderr for an error of `who` after the one that fit will throw.
void report_further_error(std::string_view who, std::exception_ptr const& error);

/// Asks the policies and Settings::stop of this process whether the run must be preempted. The run
/// remembers the first requester.
bool preemption_requested(RunState& run);

/// Aborts a validation or a dry run before one of its batches; the next start repeats it. A step is
/// always finished. Processes that train together check only at the end of a step, which they reach
/// together.
void throw_if_preempted(RunState& run);

/// Ends a run at the events at which that is possible. All of it works on Control, and knows the recipe by
/// RunState alone.
class Interruption {
 public:
  explicit Interruption(RunState& run) : run_(run), control_(run.control) {}

  bool stopped() const { return control_.is_closed(); }
  /// For each policy that asks to stop: what an event gives it.
  auto on_verdict() {
    return [this](std::string_view kind) { control_.ask(End::stop, kind); };
  }

  /// Stops if the verdict of this process, or of another one, says so. `own_verdicts`: a policy may have asked
  /// in this process alone.
  void stop_on(flow verdict, bool own_verdicts);

  /// Emits an event at which the run may end or be preempted. If the event is interrupted, the
  /// resumed run completes it: it skips the subscribers in `completed_by`.
  void emit(PolicyEvents::Interruptible const& event, std::vector<std::string> completed_by = {});

  /// Completes the event at which an earlier process was interrupted.
  void complete_unfinished();

  /// After a window that was no step, and therefore emits no event.
  void preempt_if_requested();

  /// Before the first window. The run is as it was saved, so nothing is saved.
  void preempt_before_training();

  /// Saves the run, if training has begun and a policy saves, and emits on::preempt.
  void preempt(bool has_begun);

  /// Runs `body`; after a bad loss the run continues where the recovering policy, if any, puts it.
  void with_recovery(FunctionRef<void()> body);

 private:
  bool agreed_preemption();

  void leave_unfinished(std::string_view hook, std::vector<std::string> completed_by);

  /// A subscriber has thrown, so the run ends. All state is at rest: the steps since the last save
  /// are saved, and the next start emits the event to those who have not seen it. Processes that
  /// train together do not come here together, so they cannot save.
  void save_unfinished(std::string_view hook, std::vector<std::string> completed_by);

  RunState& run_;
  Control& control_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/loop/interruption.ipp>
#endif
