// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// Every trial trains in full. Trials are created in generations: those of one see the results of the ones
/// before, and of no others.
class WholeSchedule final : public SearchSchedule {
 public:
  WholeSchedule(std::string text, std::uint64_t trials, std::uint64_t generation,
                SearchLimits const& limits, std::vector<Candidate> candidates = {});

  std::vector<std::vector<std::uint64_t>> rungs() const override { return {{horizon_}}; }
  std::string text() const override { return text_; }
  std::optional<Candidate> candidate(std::size_t trial) const override {
    return trial < candidates_.size() ? std::optional(candidates_[trial]) : std::nullopt;
  }

  SearchDecision next(SearchHistory const& history) const override {
    using Kind = SearchDecision::Kind;
    std::size_t own = 0, over = 0;  // of the first trials, up to one that runs
    for (SearchTrial const& trial : history.trials) {
      if (trial.repeats) continue;
      if (over == own && trial.is_over()) ++over;
      ++own;
    }
    std::uint64_t const visible = generation_ == 0 ? 0 : own / generation_ * generation_;
    if (own < trials_ && visible <= over) {
      return {.kind = Kind::create, .visible = static_cast<std::size_t>(visible)};
    }
    return {.kind = over < own ? Kind::wait : Kind::done};
  }

 private:
  std::string text_;
  std::uint64_t trials_;
  std::uint64_t generation_;  ///< 0: the sampler sees nothing
  std::uint64_t horizon_;
  std::vector<Candidate> candidates_;
};

/// The values of a setting on a grid: all if they are few, else `points` from the lowest to the highest.
std::vector<double> grid_values(Distribution const& of, std::uint64_t points);

}  // namespace detail

/// Trains every trial in full: the sampler alone chooses. Slow, and right where short runs say nothing of
/// long ones; the baseline that a schedule with rungs is measured against.
struct RandomSearch {
  std::uint64_t trials = 0;  ///< 0: as many as the budget pays for
  /// For a sampler that looks at results: trials that are drawn before it sees what they came to. With
  /// several workers set at least their number. Samplers with generations of their own have theirs.
  std::uint64_t generation = 1;
  RungUnit unit = RungUnit::steps;

  std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const;
};

/// Trains every combination in full. Real numbers, and whole ones with more values than that, have `points`
/// values from the lowest to the highest.
///
/// Errors  SettingsError for more than a million combinations.
struct GridSearch {
  std::uint64_t points = 5;
  RungUnit unit = RungUnit::steps;

  std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/schedule/whole_trials.ipp>
#endif
