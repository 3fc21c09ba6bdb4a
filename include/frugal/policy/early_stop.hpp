// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/compose/watching.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>
#include <frugal/run/phases.hpp>

namespace frugal {

/// Ends a run whose watched metric has stopped improving.
///
/// Lever   runs to convergence.
/// Cost    one comparison per validation, nothing per step, no host sync.
/// State   best value and validations since; both survive a resume.
/// Errors  a watched metric that the recipe does not measure does not compile; one that a policy
///         was to add in around_validate, and did not, is a MetricError. SettingsError for a
///         negative min_delta. A NaN never counts as better and does use up patience.
/// Source  patience form of Prechelt, "Early stopping - but when?" (1998); stops where
///         keras.callbacks.EarlyStopping does.
///
/// Options, in any order: Patience<3>, and the watched metric, WatchLoss.
template <class... Options>
struct EarlyStop {
 private:
  using classes = list<detail::option::patience, detail::option::watch>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: EarlyStop<...>: unknown option. Options: Patience<validations>, and a "
                "watched metric such as WatchLoss or WatchAccuracy.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: EarlyStop<...>: the same option twice. Keep one Patience<validations> and "
                "one watched metric.");
  using Limit = detail::option_of<detail::option::patience, Patience<3>, Options...>;
  using Metric = detail::option_of<detail::option::watch, WatchLoss, Options...>;

 public:
  using kind = kinds::early_stop;
  using listens = list<on::fit_begin, on::validated>;
  using needs = list<kinds::validate>;
  using after = list<kinds::validate>;

  FRUGAL_SENTENCE(without_validation,
                  "frugal: EarlyStop watches validation, and fit(train) has no validation data. "
                  "Call fit(train, valid).");
  using watches_validation = without_validation;
  FRUGAL_SENTENCE(
      without_metric,
      "frugal: EarlyStop watches a metric that this recipe does not measure. Add the "
      "metric to Validate, as in Validate<Accuracy>, or watch the loss with WatchLoss.");
  using watches = list<watched<Metric, without_metric>>;

  static constexpr About about{Term::runs_to_convergence, "one comparison per validation"};

  double min_delta = 0.0;  ///< smallest change that counts, in the metric's unit

  template <class Context>
  class State {
   public:
    explicit State(EarlyStop const& settings) : min_delta_(settings.min_delta) {}

    void on_fit_begin(FitBegin<Context>&) {
      if (min_delta_ >= 0) return;
      throw SettingsError(
          {.what = "min_delta is " + std::to_string(min_delta_),
           .where = "EarlyStop",
           .why = "the smallest change that counts is positive for metrics in both directions",
           .fix = "Give 0 or more."});
    }

    /// Called once per validation, after every metric of it is final.
    flow on_validated(Validated<Context>& phase) {
      double const value = phase.metrics[Metric::name];
      if (!std::isnan(value) && (!best_ || Metric::improves(value, *best_, min_delta_))) {
        best_ = value;
        since_ = 0;
        return flow::proceed;
      }
      return ++since_ < Limit::validations ? flow::proceed : flow::stop;
    }

    template <class Archive>
    void persist(Archive& archive) {
      archive("best", best_);
      archive("since", since_);
    }

   private:
    double min_delta_;
    std::optional<double> best_;
    int since_ = 0;
  };
};

}  // namespace frugal
