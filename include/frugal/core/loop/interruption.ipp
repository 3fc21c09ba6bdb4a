// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/loop/interruption.hpp>

#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/inline.hpp>

#include <chrono>
#include <iostream>
#include <optional>
#include <utility>

namespace frugal::detail {

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

FRUGAL_INLINE bool preemption_requested(RunState& run) {
  auto const who = [&run](std::string_view kind) { run.control.ask(End::preempt, kind); };
  bool asked = run.links.events().ask(run, who);
  if (run.settings.stop.stop_requested()) {
    who("Settings::stop");
    asked = true;
  }
  return asked;
}

FRUGAL_INLINE void throw_if_preempted(RunState& run) {
  if (!run.links.facts().agrees && preemption_requested(run)) throw Interrupted{};
}

FRUGAL_INLINE void Interruption::stop_on(flow verdict, bool own_verdicts) {
  // A caller of validate() may drop the verdict of a policy that watches validations: that policy stops the run
  // all the same, whose checkpoints have its name as of one that has ended.
  if (control_.stop_is_requested()) verdict = flow::stop;
  // Most events end here, and make no string.
  if (verdict != flow::stop && run_.links.others() == nullptr)
    return control_.forget_stop_request();
  std::string const who = control_.take_stop_request();
  if (!run_.agree_on_stop(verdict == flow::stop, who, own_verdicts)) return;
  control_.close(End::stop);
  if (control_.stopped_by().empty())
    control_.agree_on_stop(who.empty() ? std::string(another_process) : who);
}

FRUGAL_INLINE void Interruption::emit(PolicyEvents::Interruptible const& event,
                                      std::vector<std::string> completed_by) {
  control_.preempt_after_event(agreed_preemption());
  control_.enter(event.name);
  try {
    stop_on(
        run_.links.events().emit(event, run_, completed_by, control_.subscriber(), on_verdict()),
        event.own_verdicts);
  } catch (Interrupted const&) {
    leave_unfinished(event.name, std::move(completed_by));
    control_.preempt_after_event(true);
  } catch (LossError const&) {
    throw;  // the step was not good, and Rollback may go back to before it
  } catch (std::exception const&) {
    save_unfinished(event.name, std::move(completed_by));
    throw;
  }
  control_.leave();
  // The event may have taken long: a validation, a save. Several processes agree only before it.
  if (!run_.links.facts().agrees && !control_.is_preempting()) {
    control_.preempt_after_event(preemption_requested(run_));
  }
  if (control_.is_preempting()) preempt(/*has_begun=*/true);
}

FRUGAL_INLINE void Interruption::complete_unfinished() {
  Unfinished left = control_.take_unfinished();
  control_.validation().take_from(left.completed_by);
  PolicyEvents const& events = run_.links.events();
  if (left.hook == events.step.name) emit(events.step, std::move(left.completed_by));
  if (left.hook == events.epoch_end.name) emit(events.epoch_end, std::move(left.completed_by));
  control_.validation() = {};  // a changed recipe may not have come to it
}

FRUGAL_INLINE void Interruption::preempt_if_requested() {
  if (agreed_preemption()) preempt(/*has_begun=*/true);
}

FRUGAL_INLINE void Interruption::preempt_before_training() {
  if (agreed_preemption()) preempt(/*has_begun=*/false);
}

FRUGAL_INLINE void Interruption::preempt(bool has_begun) {
  using Clock = std::chrono::steady_clock;
  auto const start = Clock::now();
  control_.close(End::preempt);
  control_.ask(End::preempt, another_process);
  CheckpointPhase at(run_);
  bool const saved = has_begun && at.save();
  control_.set_preemption_saved(saved || !has_begun);
  if (has_begun && !saved && run_.links.saver() != nullptr)
    run_.warn("preempted, and the last steps could not be saved");
  std::chrono::duration<double> const took = Clock::now() - start;
  Preemption phase(run_, has_begun, saved, took.count());
  run_.links.events().emit_preempt(phase);
}

FRUGAL_INLINE void Interruption::with_recovery(FunctionRef<void()> body) {
  if (!run_.links.events().recovers()) return body();
  try {
    body();
  } catch (LossError const& error) {
    run_.discard_window();
    CheckpointPhase at(run_);
    if (!run_.links.events().recover(at, error)) throw;
    // The cause of the stop or preemption is ahead of the run again.
    control_.reopen();
  }
}

FRUGAL_INLINE bool Interruption::agreed_preemption() {
  if (auto const asked = control_.take_agreed()) return *asked;
  return run_.reduce(Quantity::stop, preemption_requested(run_) ? 1.0 : 0.0) != 0;
}

FRUGAL_INLINE void Interruption::leave_unfinished(std::string_view hook,
                                                  std::vector<std::string> completed_by) {
  control_.validation().add_to(completed_by);
  control_.set_unfinished({std::string(hook), std::move(completed_by)});
}

FRUGAL_INLINE void Interruption::save_unfinished(std::string_view hook,
                                                 std::vector<std::string> completed_by) {
  if (run_.links.saver() == nullptr || run_.links.facts().agrees) return;
  // A policy that cannot save now has reported that by its own error.
  if (control_.subscriber() == run_.links.events().saver) return;
  leave_unfinished(hook, std::move(completed_by));
  control_.leave();
  try {
    CheckpointPhase at(run_);
    static_cast<void>(at.save());
  } catch (std::exception const&) {
    report_further_error("the save of the last steps", std::current_exception());
  }
}

}  // namespace frugal::detail
