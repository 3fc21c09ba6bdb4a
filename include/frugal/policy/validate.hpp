// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/metric.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/metrics/accuracy.hpp>  // IWYU pragma: keep
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>

namespace frugal {

/// Batches of each validation source that Validate tries before the first step, to find errors
/// before they cost anything; 0: none. Results are thrown away.
template <std::size_t N>
struct SanityBatches {
  static constexpr std::size_t sanity_batches = N;
};

namespace detail::option {

struct sanity_batches {
  template <class O>
  static constexpr bool has = requires {
    { O::sanity_batches } -> std::convertible_to<std::size_t>;
  };
};

}  // namespace detail::option

namespace detail {

std::string nothing_measured(std::string const& cadence, std::string const& end);

/// What a cadence does not come to in a run of this length; empty if it is due, or may be.
template <class Cadence>
std::string cadence_outlook(Cadence const& cadence, RunLimits const& horizon) {
  if constexpr (requires {
                  typename Cadence::unit;
                  cadence.count();
                }) {
    using Unit = typename Cadence::unit;
    std::uint64_t const count = cadence.count();
    std::uint64_t const steps = horizon.total_steps.value_or(horizon.steps);
    if constexpr (std::same_as<Unit, Epoch>) {
      std::uint64_t const epochs = horizon.complete_epochs();
      if (epochs < count) {
        return nothing_measured(
            "after " + std::to_string(count) + (count == 1 ? " epoch" : " epochs"),
            "completes " + std::to_string(epochs));
      }
    } else if constexpr (std::same_as<Unit, OptimizerStep>) {
      if (steps < count) {
        return nothing_measured("at step " + std::to_string(count),
                                "ends at step " + std::to_string(steps));
      }
    } else if constexpr (std::same_as<Unit, Sample>) {
      // Of an epoch that the run does not complete, no step says how many samples it takes.
      std::uint64_t const epochs = horizon.begun_epochs();
      std::uint64_t const each = horizon.samples_per_epoch.value_or(RunLimits::unlimited);
      if (each != 0 && epochs <= RunLimits::unlimited / each && epochs * each < count) {
        return nothing_measured("after " + std::to_string(count) + " samples",
                                "trains on at most " + std::to_string(epochs * each));
      }
    }
  }
  return {};
}

}  // namespace detail

/// Measures the module on the validation data, at a cadence: the mean loss, and any metrics.
///
/// Lever   runs to convergence: what EarlyStop, plateau schedules and "best" checkpoints see.
/// Cost    one forward pass over the validation data each time, with one host sync per metric at
///         its end; in between one comparison of a counter. Before the first step two batches of
///         each validation source (SanityBatches).
/// State   none.
/// Errors  EmptySourceError if the validation data has no batch; those of the objective and the
///         metrics (ShapeError, MetricError), on the first batches before the first step. A NaN
///         loss is reported and not thrown; so is that of a validation in which no label counts. A
///         metric that fails later is NaN, and Report::warnings says why: it does not end a paid run.
///         A cadence beyond the run's end is a warning before the first step.
///
/// Fills the slot by default as `Validate<Every<1, Epoch>>`; without validation data it does
/// nothing. `Validate<Every<500>, Accuracy>` measures every 500 steps, `Validate<Accuracy>` at each
/// epoch's end. `"loss"` is always there. Options come in any order.
template <class... Options>
struct Validate {
 private:
  using classes =
      list<detail::option::cadence, detail::option::sanity_batches, detail::option::metric>;
  static_assert(
      detail::options_known<classes, Options...>,
      "frugal: Validate<...>: unknown option. Options: a cadence such as Every<1, Epoch>, "
      "metrics such as Accuracy, and SanityBatches<2>. Names to watch (WatchAccuracy) go to the "
      "policy that watches them.");
  static_assert(detail::options_unique<list<detail::option::cadence>, Options...>,
                "frugal: Validate<...>: two cadences. Keep one, such as Every<1, Epoch>.");
  static_assert(detail::options_unique<list<detail::option::sanity_batches>, Options...>,
                "frugal: Validate<...>: two SanityBatches. Keep one.");
  using Cadence = detail::option_of<detail::option::cadence, Every<1, Epoch>, Options...>;
  using Sanity = detail::option_of<detail::option::sanity_batches, SanityBatches<2>, Options...>;

  using chosen = detail::named_metrics_in<detail::options_of<detail::option::metric, Options...>>;

  template <class List>
  struct with_cadence;
  template <class... Ms>
  struct with_cadence<list<Ms...>> {
    using type = Validate<Cadence, Ms...>;
  };

 public:
  using kind = kinds::validate;
  using listens = list<on::fit_begin, on::step, on::epoch_end>;
  using after = list<kinds::schedule>;
  using measures = typename chosen::type;
  /// The form in which a checkpoint names it, whatever the order of its options.
  using canonical = typename with_cadence<measures>::type;

  static constexpr About about{Term::runs_to_convergence,
                               "a pass over the validation data at its cadence"};

  Cadence every{};
  std::size_t sanity_batches = Sanity::sanity_batches;      ///< 0: none
  [[no_unique_address]] typename chosen::values metrics{};  ///< each measurement copies them

  /// What a run of this length does not come to; empty if there is nothing to say.
  std::string outlook(RunLimits const& horizon) const {
    return detail::cadence_outlook(every, horizon);
  }

  class State {
   public:
    using transient = void;

    explicit State(Validate const& settings)
        : every_(settings.every),
          sanity_batches_(settings.sanity_batches),
          metrics_(settings.metrics) {}

    void on_fit_begin(FitBegin& phase) const {
      detail::begin_metrics(phase, "Validate", metrics_);
      std::string const text = detail::cadence_outlook(every_, phase.horizon());
      if (!text.empty() && phase.validates()) phase.warn_of_plan("Validate: " + text);
      phase.try_validation(sanity_batches_);
    }
    flow on_step(Step& phase) {
      if constexpr (Cadence::per_epoch) {
        return flow::proceed;
      } else {
        return every_.due_at_step(phase.counters()) ? phase.validate() : flow::proceed;
      }
    }
    flow on_epoch_end(EpochEnd& phase) {
      return every_.due_at_epoch_end(phase.counters()) ? phase.validate() : flow::proceed;
    }

   private:
    [[no_unique_address]] Cadence every_;
    std::size_t sanity_batches_;
    [[no_unique_address]] typename chosen::values metrics_;
  };
};

template <>
struct null_policy<kinds::validate> {
  using type = Validate<>;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/validate.ipp>
#endif
