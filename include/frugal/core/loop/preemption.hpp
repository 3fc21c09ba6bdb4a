// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/interrupted.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run.hpp>

// Preemption: a run is saved and stops early, and the next start resumes it.
namespace frugal::detail {

/// The requester, if it is not a policy of this process.
inline constexpr std::string_view another_process = "another process";

/// Asks the policies and Settings::stop of this process whether the run must be preempted. The run
/// remembers the first requester.
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

/// Aborts a validation or a dry run before one of its batches; the next start repeats it. A step is
/// always finished. Processes that train together check only at the end of a step, which they reach
/// together.
template <class Context>
void throw_if_preempted(Run<Context>& run) {
  if constexpr (!provided<service::reduce, typename Context::policies>) {
    if (preemption_requested(run)) throw Interrupted{};
  }
}

/// Saves the run, if training has begun and a policy saves, and emits on::preempt.
template <class Context>
void preempt(Run<Context>& run, bool has_begun) {
  using Clock = std::chrono::steady_clock;
  auto const start = Clock::now();
  if (run.preempted_by.empty()) run.preempted_by = another_process;
  CheckpointPhase<Context> at(run);
  bool const saved = has_begun && at.save();
  if (has_begun && !saved && provided<service::save, typename Context::policies>) {
    run.warn("preempted, and the last steps could not be saved");
    if (run.unsaved.empty()) run.unsaved = "the policy that saves could not";
  }
  std::chrono::duration<double> const took = Clock::now() - start;
  run.preempted = true;
  Preemption<Context> phase(run, has_begun, saved, took.count());
  run.engine->template emit<on::preempt>(phase);
}

}  // namespace frugal::detail
