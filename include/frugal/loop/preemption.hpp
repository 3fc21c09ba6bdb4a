// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include <frugal/compose/hooks.hpp>
#include <frugal/compose/interrupted.hpp>
#include <frugal/run/phases.hpp>
#include <frugal/run/run.hpp>

// Preemption a run before its end, so that it can be gone on with.
namespace frugal::detail {

/// Who asked, where no policy of this process did.
inline constexpr std::string_view another_process = "another process";

/// Does anybody ask for it: a policy, or who gave Settings::stop? Of one process; the first who
/// does is remembered.
template <class Context>
bool preemption_requested(Run<Context>& run) {
  auto const who = [&](std::string_view kind) {
    if (run.preempted_by.empty()) run.preempted_by = kind;
  };
  Phase<Context> phase(run);
  bool asked = run.engine->template ask<query::stop_requested>(phase, who);
  if (run.settings.stop.stop_requested()) {
    who("Settings::stop");
    asked = true;
  }
  return asked;
}

/// Before each batch of what is not training: a step is finished, a validation begun again.
/// Processes that train together come to the next step's end together, and look only there.
template <class Context>
void throw_if_preempted(Run<Context>& run) {
  if constexpr (!provided<service::reduce, typename Context::policies>) {
    if (preemption_requested(run)) throw Interrupted{};
  }
}

/// Saves, where there is something to save and somebody who does, and tells that the run is left.
template <class Context>
void leave(Run<Context>& run, bool has_begun) {
  using Clock = std::chrono::steady_clock;
  auto const start = Clock::now();
  if (run.preempted_by.empty()) run.preempted_by = another_process;
  SafePoint<Context> at(run);
  bool const saved = has_begun && at.save();
  if (has_begun && !saved && provided<service::save, typename Context::policies>) {
    run.advise("preempted, and the last steps could not be saved");
    if (run.unsaved.empty()) run.unsaved = "the policy that saves could not";
  }
  std::chrono::duration<double> const took = Clock::now() - start;
  run.preempted = true;
  Preemption<Context> phase(run, has_begun, saved, took.count());
  run.engine->template emit<on::preempt>(phase);
}

}  // namespace frugal::detail
