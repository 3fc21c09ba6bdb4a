// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/schedule/median_stop.hpp>

#include <frugal/inline.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  std::size_t const middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

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

FRUGAL_INLINE MedianSchedule::MedianSchedule(std::uint64_t trials,
                                             std::vector<std::uint64_t> budgets,
                                             std::size_t startup, RungUnit unit)
    : trials_(trials), budgets_(std::move(budgets)), startup_(startup), unit_(unit) {}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::unique_ptr<SearchSchedule const> MedianStop::bind(
    SearchLimits const& limits) const {
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
  return std::make_unique<detail::MedianSchedule const>(trials, std::move(budgets), startup, unit);
}

}  // namespace frugal
