// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

namespace detail {
/// Who asked, if it is not a policy of this process.
inline constexpr std::string_view another_process = "another process";
}  // namespace detail

/// How a run ends.
enum class End : std::uint8_t {
  none,     ///< it goes on, or has trained its last step
  stop,     ///< a policy has asked
  preempt,  ///< the machine goes away, or a program asked by Settings::stop; the next start goes on
  interrupt,  ///< the same, and the user has asked, with Ctrl-C
};

/// Whether a run goes on: who asks for its end, how it has ended, and the event in which that happened.
/// `core/loop/interruption.hpp` has the decisions.
class Control {
 public:
  // ---- the end

  /// Asks for an end. Who asked first for a stop, and for a preemption, is remembered; an interruption
  /// replaces the name of the preemption. A stop has two names: a save within the event needs that of the run at once,
  /// and a resume within it loads another one.
  void ask(End how, std::string_view who);
  /// No window follows.
  void close(End how);
  /// The run has gone back to before its stop or preemption.
  void reopen();

  bool is_closed() const { return end_ != End::none; }
  /// The run ended before its last step, to be continued by the next start.
  bool preempted() const { return end_ == End::preempt || end_ == End::interrupt; }
  /// The user has asked for the end, perhaps at a step that was the last one anyway.
  bool interrupted() const { return by_user_; }
  /// Kind of the first policy that asked to stop; empty if none did. Saved.
  std::string const& stopped_by() const { return stopped_by_; }
  /// Who first asked for a preemption; empty if nobody did.
  std::string const& preempted_by() const { return preempted_by_; }
  /// Who stopped or preempted the run; empty if it ran to its end. Not saved: a preempted run has not ended.
  std::string const& ended_by() const {
    return stopped_by_.empty() && preempted() ? preempted_by_ : stopped_by_;
  }

  /// The name of the stop becomes what all processes have agreed on; empty: none has asked.
  void agree_on_stop(std::string who) { stopped_by_ = std::move(who); }
  /// Who first asked to stop in the event in progress. The next event begins without.
  std::string take_stop_request() { return std::exchange(stop_requested_by_, {}); }
  bool stop_is_requested() const { return !stop_requested_by_.empty(); }
  void forget_stop_request() { stop_requested_by_.clear(); }

  /// Whether the run is preempted after the event in progress.
  bool is_preempting() const { return is_preempting_; }
  void preempt_after_event(bool preempts) { is_preempting_ = preempts; }
  /// Of processes that divide a window: whether one of them asked for a preemption before it was complete.
  void agree_in_window(bool asked) { asked_in_window_ = asked; }
  /// What they agreed on, once; nothing if the last window did not ask.
  std::optional<bool> take_agreed() { return std::exchange(asked_in_window_, std::nullopt); }

  // ---- the save of a run that ends

  /// The outcome of a requested save. A policy that saves may have said more about a failure.
  void saved(bool done);
  void set_unsaved(std::string why) { unsaved_ = std::move(why); }
  /// Why the last requested save failed; empty if it did not.
  std::string const& unsaved() const { return unsaved_; }
  /// The preempted run is saved, or had nothing to save.
  void set_preemption_saved(bool is_saved) { preemption_saved_ = is_saved; }
  bool preemption_saved() const { return preemption_saved_; }

  // ---- the event in progress

  /// An event begins that may be interrupted, and ends.
  void enter(std::string_view hook) { current_hook_ = hook; }
  void leave() { current_hook_ = {}; }
  bool in_event() const { return !current_hook_.empty(); }
  std::string_view current_hook() const { return current_hook_; }
  /// Position, in order, of the subscriber being called.
  std::size_t& subscriber() { return current_subscriber_; }
  UnfinishedValidation& validation() { return validation_; }
  /// An event that the resumed run completes. Saved.
  Unfinished const& unfinished() const { return unfinished_; }
  void set_unfinished(Unfinished event) { unfinished_ = std::move(event); }
  Unfinished take_unfinished() { return std::exchange(unfinished_, {}); }
  /// The event in progress has failed, and its window is discarded.
  void discard_event();

  template <class Archive>
  void persist_unfinished(Archive& archive) {
    unfinished_.persist(archive);
  }
  template <class Archive>
  void persist_stop(Archive& archive) {
    archive("stopped_by", stopped_by_);
  }

 private:
  End end_ = End::none;
  bool by_user_ = false;
  bool is_preempting_ = false;
  bool preemption_saved_ = false;
  std::optional<bool> asked_in_window_{};
  std::string stopped_by_{};
  std::string stop_requested_by_{};
  std::string preempted_by_{};
  std::string unsaved_{};
  Unfinished unfinished_{};
  UnfinishedValidation validation_{};
  std::string_view current_hook_{};
  std::size_t current_subscriber_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/control.ipp>
#endif
