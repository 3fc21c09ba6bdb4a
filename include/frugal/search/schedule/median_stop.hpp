// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// The mean of the two middle ones, or the middle one; NaN for none. NaN are no values.
double median_of(std::vector<double> values);

/// Whether a trial stops at its newest rung: its best value so far is worse than the median at this rung
/// of the trials that have trained in full.
bool is_below_median(SearchHistory const& history, SearchTrial const& trial, std::size_t startup);

class MedianSchedule final : public SearchSchedule {
 public:
  MedianSchedule(std::uint64_t trials, std::vector<std::uint64_t> budgets, std::size_t startup,
                 RungUnit unit);

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

  std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/schedule/median_stop.ipp>
#endif
