// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/run/phases.hpp>

namespace frugal {

template <int N>
struct Seconds {
  static_assert(N >= 1, "frugal: Seconds<0> is over before it begins. Write Seconds<1> or more.");
  static constexpr double seconds = N;
};

template <int N>
struct Minutes {
  static_assert(N >= 1, "frugal: Minutes<0> is over before it begins. Write Minutes<1> or more.");
  static constexpr double seconds = 60.0 * N;
};

template <int N>
struct Hours {
  static_assert(N >= 1, "frugal: Hours<0> is over before it begins. Write Hours<1> or more.");
  static constexpr double seconds = 3600.0 * N;
};

namespace detail {

template <class T>
inline constexpr bool is_wall_time = false;
template <int N>
inline constexpr bool is_wall_time<Seconds<N>> = sizeof(Seconds<N>) != 0;  // and N is looked at
template <int N>
inline constexpr bool is_wall_time<Minutes<N>> = sizeof(Minutes<N>) != 0;
template <int N>
inline constexpr bool is_wall_time<Hours<N>> = sizeof(Hours<N>) != 0;

template <class Limit>
constexpr std::chrono::duration<double> wall_time() {
  if constexpr (is_wall_time<Limit>) {
    return std::chrono::duration<double>(Limit::seconds);
  } else {
    return {};
  }
}

}  // namespace detail

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

  template <class Context>
  class State {
   public:
    using transient = void;  // AnyRun has the time before a resume

    explicit State(StopAfter const& settings) : limit_(settings.limit.count()) {}

    void on_fit_begin(FitBegin<Context>&) {
      if (limit_ > 0) return;
      throw SettingsError({.what = "the limit is " + std::to_string(limit_) + " s",
                           .where = "StopAfter",
                           .why = "the run would end before it begins",
                           .fix = "Give more than 0, such as std::chrono::hours(4)."});
    }

    /// As with Settings::epochs, an ended run continues if it gets more.
    void on_ready(Ready<Context>& phase) {
      AnyRun& run = detail::run_of(phase);
      if (run.stopped_by == kind::name && verdict(phase) == flow::proceed) run.stopped_by.clear();
    }

    flow on_step(Step<Context>& phase) { return verdict(phase); }
    flow on_epoch_end(EpochEnd<Context>& phase) { return verdict(phase); }

   private:
    flow verdict(Phase<Context> const& phase) const {
      return phase.seconds() < limit_ ? flow::proceed : flow::stop;
    }

    double limit_;
  };
};

}  // namespace frugal
