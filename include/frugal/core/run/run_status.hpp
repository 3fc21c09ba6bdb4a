// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// An interrupted event: its hook, and which policies have completed it. A resumed run emits it to
/// all others, even if the recipe has changed.
struct Unfinished {
  std::string hook{};                       ///< the hook's name; empty: none
  std::vector<std::string> completed_by{};  ///< scope names of the policies that completed it

  template <class Archive>
  void persist(Archive& archive) {
    archive.scope("broken_off", [&](auto& inner) {
      inner("hook", hook);
      inner("told", completed_by);
    });
  }
};

/// A validation within the event in progress that is measured, and whose subscribers have not all seen it.
/// A checkpoint has it among the names of Unfinished: a resumed run neither measures again, nor counts it
/// twice.
struct UnfinishedValidation {
  bool measured = false;
  std::vector<std::string> completed_by{};  ///< scope names of the policies that have seen it
  std::size_t current_subscriber = 0;       ///< position, in order, of the one being called

  /// Adds it to the names in an Unfinished.
  void add_to(std::vector<std::string>& names) const;
  /// Takes it from there.
  void take_from(std::vector<std::string>& names);

 private:
  static constexpr std::string_view mark = "on_validated: ";
};

/// Whether a run goes on: what has ended, preempted or interrupted it. `core/loop/interruption.hpp`
/// has the decisions.
struct RunStatus {
  bool stopped = false;             ///< no window follows: a policy has asked, or a preemption
  std::string stopped_by{};         ///< kind of the first policy that asked to stop; saved
  std::string stop_requested_by{};  ///< the same, of those that asked during the current event
  bool is_preempting = false;       ///< preempt after the current event
  /// Of processes that divide a window: whether one of them asked for a preemption before it was
  /// complete. Until it is asked for.
  std::optional<bool> asked_in_window{};
  std::string preempted_by{};          ///< kind of the first policy that requested the preemption
  bool preempted = false;              ///< the run was preempted; its state is saved if possible
  bool preemption_saved = false;       ///< then: and is saved, or had nothing to save
  bool interrupted = false;            ///< a person ended it: see interrupted_by_user()
  std::string unsaved{};               ///< why the last requested save failed
  bool epoch_begun = false;            ///< on_epoch_begin has been emitted for this epoch; saved
  Unfinished unfinished{};             ///< an event that the resumed run completes; saved
  UnfinishedValidation validation{};   ///< of the event in progress; saved in `unfinished`
  std::string_view current_hook{};     ///< the event in progress, if it may be interrupted
  std::size_t current_subscriber = 0;  ///< position, in order, of the subscriber being called

  /// Kind of the policy that stopped or preempted the run; empty if it ran to its end. Not saved: a
  /// preempted run has not ended.
  std::string const& ended_by() const {
    return stopped_by.empty() && preempted ? preempted_by : stopped_by;
  }

  /// A policy asks to stop. Both names are set: a save within this event needs `stopped_by` at once,
  /// and a resume within it loads another one.
  void request_stop(std::string_view kind) {
    if (stopped_by.empty()) stopped_by = kind;
    if (stop_requested_by.empty()) stop_requested_by = kind;
  }
  void request_preemption(std::string_view kind) {
    if (preempted_by.empty()) preempted_by = kind;
  }
  /// The user, not the machine, requested the end, with Ctrl-C.
  void interrupted_by_user();

  /// The outcome of a requested save. A policy that saves may have said more about a failure.
  void saved(bool done);

  /// The run has gone back to before its stop or preemption.
  void clear_stop();
  /// The event in progress has failed, and its window is discarded.
  void discard_event();
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run_status.ipp>
#endif
