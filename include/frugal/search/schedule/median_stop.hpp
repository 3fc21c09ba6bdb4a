// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// The mean of the two middle ones, or the middle one; NaN for none. NaN are no values.
FRUGAL_INLINE double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  std::size_t const middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

/// Whether a trial stops at its newest rung: its best value so far is worse than the median at this rung
/// of the trials that have trained in full.
FRUGAL_INLINE bool is_below_median(SearchHistory const& history, SearchTrial const& trial,
                                   std::size_t startup) {
  std::size_t const rung = trial.rungs.size() - 1;
  std::vector<double> others;
  std::size_t complete = 0;
  for (SearchTrial const& other : history.trials) {
    if (other.repeats || other.state != TrialState::complete) continue;
    ++complete;
    if (other.rungs.size() > rung) others.push_back(other.rungs[rung].values.front());
  }
  if (complete == 0 || complete < startup) return false;
  double best = std::numeric_limits<double>::quiet_NaN();
  for (RungResult const& each : trial.rungs) best = std::fmin(best, each.values.front());
  if (std::isnan(best)) return true;
  double const median = median_of(std::move(others));
  return !std::isnan(median) && best > median;
}

class MedianSchedule final : public SearchSchedule {
 public:
  FRUGAL_INLINE MedianSchedule(std::uint64_t trials, std::vector<std::uint64_t> budgets,
                               std::size_t startup, RungUnit unit)
      : trials_(trials), budgets_(std::move(budgets)), startup_(startup), unit_(unit) {}

  std::vector<std::vector<std::uint64_t>> rungs() const override { return {budgets_}; }
  bool is_deterministic() const override { return false; }
  std::string text() const override {
    return "MedianStop of " + std::to_string(trials_) + " trials, the first " +
           std::to_string(startup_) + " in full," + budgets_text(budgets_, unit_);
  }

  SearchDecision next(SearchHistory const& history) const override {
    using Kind = SearchDecision::Kind;
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      SearchTrial const& trial = history.trials[i];
      if (trial.repeats || trial.is_over() || trial.is_open()) continue;
      bool const stops = is_below_median(history, trial, startup_);
      return {.kind = stops ? Kind::prune : Kind::promote, .trial = i};
    }
    OwnTrials const own = OwnTrials::of(history);
    if (own.count < trials_) return {.kind = Kind::create, .visible = history.trials.size()};
    return {.kind = own.open ? Kind::wait : Kind::done};
  }

 private:
  std::uint64_t trials_;
  std::vector<std::uint64_t> budgets_;
  std::size_t startup_;
  RungUnit unit_;
};

}  // namespace detail

/// Ends a trial whose best value is worse than the median of the complete trials at the same point. Decisions
/// depend on the order in which results arrive; the journal has that order.
///
/// Source  Golovin et al., "Google Vizier: a service for black-box optimization" (2017), section 3.2, with the
///         best value in place of the mean, as Optuna's MedianPruner has it.
struct MedianStop {
  std::uint64_t trials = 64;
  std::uint64_t startup = 5;   ///< trials that must be complete before another one is stopped
  std::uint64_t warmup = 0;    ///< no trial is stopped before; in `unit`
  std::uint64_t interval = 0;  ///< between two decisions, in `unit`; 0: a tenth of a whole run
  RungUnit unit = RungUnit::steps;

  FRUGAL_INLINE std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const {
    detail::require_trials(trials, "MedianStop");
    detail::require_no_generations(limits, "MedianStop");
    if (limits.objectives != 1) {
      detail::refuse_schedule("MedianStop has " + std::to_string(limits.objectives) + " objectives",
                              "there is no median of points that are better in different ways",
                              "Use SuccessiveHalving, Hyperband, Asha or RandomSearch.",
                              "MedianStop");
    }
    std::uint64_t const every =
        interval != 0 ? interval : std::max<std::uint64_t>(limits.horizon / 10, 1);
    std::vector<std::uint64_t> budgets;
    for (std::uint64_t at = warmup == 0 ? every : warmup; at < limits.horizon; at += every) {
      budgets.push_back(at);
    }
    budgets.push_back(limits.horizon);
    detail::require_budget(limits, limits.horizon, unit, "MedianStop");
    return std::make_unique<detail::MedianSchedule const>(trials, std::move(budgets), startup,
                                                          unit);
  }
};

}  // namespace frugal
