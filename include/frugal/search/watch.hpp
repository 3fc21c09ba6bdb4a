// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/spot/signals.hpp>
#include <frugal/search/schedule/schedule.hpp>

namespace frugal::detail {

/// Preempts a trial at the end of its rung, on SIGTERM, and when the budget is spent. search() adds it to every
/// recipe. It never shortens a run: the schedule of the learning rate sees the whole length, and the next rung
/// resumes exactly here.
struct SearchWatch {
  FRUGAL_DIAGNOSTIC(
      without_checkpoint,
      "frugal: a search needs Checkpoint: a trial that is promoted resumes from where it was. Add "
      "Checkpoint<Every<500>> to the policies of SearchJob.");

  using kind = kinds::search_watch;
  using needs = list<need<kinds::checkpoint, without_checkpoint>>;
  using listens = list<on::fit_begin, query::stop_requested>;

  RungUnit unit = RungUnit::steps;
  std::optional<std::uint64_t> until{};             ///< in that unit
  double seconds_per_unit = 1;                      ///< of seconds and cents
  std::function<bool()> const* is_spent = nullptr;  ///< whether the budget is; asked once a second
  PreemptionSignals const* signals = nullptr;
  bool* reached = nullptr;  ///< set when the rung is ended
  bool* begun = nullptr;    ///< set when the run has resumed, or begins

  class State {
   public:
    using transient = void;

    explicit State(SearchWatch const& watch) : watch_(&watch) {}

    /// Checkpoint is called before it.
    void on_fit_begin(FitBegin&) const {
      if (watch_->begun != nullptr) *watch_->begun = true;
    }

    bool stop_requested(Phase const& phase) const {
      if (watch_->until && is_reached(phase)) {
        *watch_->reached = true;
        return true;
      }
      if (watch_->is_spent != nullptr && WallClock::seconds() >= next_look_) {
        spent_ = spent_ || (*watch_->is_spent)();
        next_look_ = WallClock::seconds() + 1;
      }
      if (spent_) return true;
      return watch_->signals != nullptr && watch_->signals->requested();
    }

   private:
    bool is_reached(Phase const& phase) const {
      switch (watch_->unit) {
        case RungUnit::steps:
          return phase.counters().step >= *watch_->until;
        case RungUnit::samples:
          return phase.counters().sample >= *watch_->until;
        case RungUnit::seconds:
        case RungUnit::cents:
          break;
      }
      // A first rung that the set-up takes would judge the initial weights.
      return phase.counters().step != 0 &&
             phase.seconds() >= static_cast<double>(*watch_->until) * watch_->seconds_per_unit;
    }

    SearchWatch const* watch_;
    mutable double next_look_ = 0;
    mutable bool spent_ = false;
  };
};

}  // namespace frugal::detail
