// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/durations.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Ends a run after some hours of training, those before a resume included.
///
/// Lever   hours per run: a budget. No run costs more than that, whatever its epochs are set to.
/// Cost    one reading of the clock per step. No host sync.
/// State   none: a checkpoint has the time of training. A run that this has ended is at its end,
///         and continues when it gets a longer limit.
/// Errors  SettingsError for a limit that is not above 0.
///
/// The step is finished, and Checkpoint saves after it. A validation is finished too.
template <class Limit = void>
struct StopAfter {
  static_assert(
      detail::is_wall_time<Limit>,
      "frugal: StopAfter<...> takes one wall time. Write StopAfter<Hours<4>>, or Minutes<N> "
      "or Seconds<N>.");

  using kind = kinds::stop_after;
  using listens = list<on::fit_begin, on::ready, on::step, on::epoch_end>;
  // If a validation in the same event ends the run as well, the run is ended by that.
  using after = list<kinds::validate>;

  static constexpr About about{Term::hours_per_run, "one reading of the clock"};

  std::chrono::duration<double> limit = detail::wall_time<Limit>();  ///< of training

  class State {
   public:
    using transient = void;  // RunState has the time before a resume

    explicit State(StopAfter const& settings) : limit_(settings.limit.count()) {}

    void on_fit_begin(FitBegin& phase) {
      if (WallClock::shortcoming()) {
        phase.warn(std::string("StopAfter: ") + WallClock::shortcoming());
      }
      if (limit_ > 0) return;
      throw SettingsError({.what = "the limit is " + std::to_string(limit_) + " s",
                           .where = "StopAfter",
                           .why = "the run would end before it begins",
                           .fix = "Give more than 0, such as std::chrono::hours(4)."});
    }

    /// As with Settings::epochs, an ended run continues if it gets more.
    void on_ready(Ready& phase) {
      if (phase.stopped_by(kind::name) && verdict(phase) == flow::proceed) phase.withdraw_stop();
    }

    flow on_step(Step& phase) { return verdict(phase); }
    flow on_epoch_end(EpochEnd& phase) { return verdict(phase); }

   private:
    flow verdict(Phase const& phase) const {
      return phase.seconds() < limit_ ? flow::proceed : flow::stop;
    }

    double limit_;
  };
};

}  // namespace frugal
