// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/metrics/accuracy.hpp>  // IWYU pragma: keep
#include <frugal/policy/kinds.hpp>
#include <frugal/run/metric.hpp>
#include <frugal/run/phases.hpp>

namespace frugal {

/// Measures the module on the validation data, at a cadence: the mean loss, and any metrics.
///
/// Lever   runs to convergence: what EarlyStop, plateau schedules and "best" checkpoints see.
/// Cost    one forward pass over the validation data each time, one host sync at its end;
///         between times one comparison of a counter.
/// State   none.
/// Errors  EmptySourceError when the validation data has no batch; NaN losses are reported as
///         such, not thrown.
///
/// Fills the slot by default as `Validate<Every<1, Epoch>>`; without validation data it does
/// nothing. `Validate<Every<500>, Accuracy>` measures every 500 steps. `"loss"` is always there.
template <class Cadence = Every<1, Epoch>, class... Ms>
struct Validate {
  using kind = kinds::validate;
  using listens = list<on::step, on::epoch_end>;
  // A log of a step is written before the validation of that step.
  using after = list<kinds::schedule, kinds::log>;
  using metrics = typename detail::metrics_named<Ms...>::type;

  static constexpr About about{Term::runs_to_convergence,
                               "a pass over the validation data at its cadence"};

  template <class Context>
  class State {
   public:
    explicit State(Validate const&) {}

    flow on_step(Step<Context>& phase) {
      if constexpr (Cadence::per_epoch) {
        return flow::proceed;
      } else {
        return Cadence::due_at_step(phase.counters()) ? phase.validate() : flow::proceed;
      }
    }
    flow on_epoch_end(EpochEnd<Context>& phase) {
      return Cadence::due_at_epoch_end(phase.counters()) ? phase.validate() : flow::proceed;
    }
  };
};

template <>
struct null_policy<kinds::validate> {
  using type = Validate<>;
};

}  // namespace frugal
