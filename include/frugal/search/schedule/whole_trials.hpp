// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/inline.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// Every trial trains in full. Trials are created in generations: those of one see the results of the ones
/// before, and of no others.
class WholeSchedule final : public SearchSchedule {
 public:
  FRUGAL_INLINE WholeSchedule(std::string text, std::uint64_t trials, std::uint64_t generation,
                              SearchLimits const& limits, std::vector<Candidate> candidates = {})
      : text_(std::move(text)),
        trials_(trials),
        generation_(generation),
        horizon_(limits.horizon),
        candidates_(std::move(candidates)) {}

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
FRUGAL_INLINE std::vector<double> grid_values(Distribution const& of, std::uint64_t points) {
  std::vector<double> values;
  auto const count = count_of(of);
  if (auto const* const whole = std::get_if<Int>(&of); whole != nullptr && *count <= points) {
    for (std::uint64_t i = 0; i < *count; ++i) {
      values.push_back(
          static_cast<double>(whole->low + static_cast<std::int64_t>(i) * whole->step));
    }
    return values;
  }
  if (std::holds_alternative<Choice>(of)) {
    for (std::uint64_t i = 0; i < *count; ++i) values.push_back(static_cast<double>(i));
    return values;
  }
  for (std::uint64_t i = 0; i < points; ++i) {
    double const u = points == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(points - 1);
    double value = 0;
    if (auto const* const real = std::get_if<Uniform>(&of)) {
      value = std::clamp(real->low + u * (real->high - real->low), real->low, real->high);
    } else if (auto const* const log = std::get_if<LogUniform>(&of)) {
      double const low = std::log(log->low), high = std::log(log->high);
      value = i + 1 == points && points > 1
                  ? log->high
                  : std::clamp(std::exp(low + u * (high - low)), log->low, log->high);
    } else {
      value = value_at(of, u);
    }
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  return values;
}

}  // namespace detail

/// Trains every trial in full: the sampler alone chooses. Slow, and right where short runs say nothing of
/// long ones; the baseline that a schedule with rungs is measured against.
struct RandomSearch {
  std::uint64_t trials = 0;  ///< 0: as many as the budget pays for
  /// For a sampler that looks at results: trials that are drawn before it sees what they came to. With
  /// several workers set at least their number. Samplers with generations of their own have theirs.
  std::uint64_t generation = 1;
  RungUnit unit = RungUnit::steps;

  FRUGAL_INLINE std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const {
    if (trials == 0 && !limits.budget) detail::refuse_unlimited("RandomSearch", "trials", unit);
    std::uint64_t const count = trials != 0 ? trials : *limits.budget / limits.horizon;
    detail::require_budget(limits, std::max<std::uint64_t>(count, 1) * limits.horizon, unit,
                           "RandomSearch");
    std::uint64_t const own = limits.generation != 0 ? limits.generation : generation;
    detail::require_trials(own, "RandomSearch::generation");
    return std::make_unique<detail::WholeSchedule const>(
        "RandomSearch of " + std::to_string(count) + " trials of " +
            std::to_string(limits.horizon) + " " + name_of(unit) +
            (limits.learns ? ", in generations of " + std::to_string(own) : std::string()),
        count, limits.learns ? own : 0, limits);
  }
};

/// Trains every combination in full. Real numbers, and whole ones with more values than that, have `points`
/// values from the lowest to the highest.
///
/// Errors  SettingsError for more than a million combinations.
struct GridSearch {
  std::uint64_t points = 5;
  RungUnit unit = RungUnit::steps;

  FRUGAL_INLINE std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const {
    detail::require_trials(points, "GridSearch::points");
    constexpr std::size_t most = 1'000'000;
    SearchDomain const& domain = *limits.domain;
    std::vector<Candidate> all;
    for (std::size_t recipe = 0; recipe < domain.recipes.size(); ++recipe) {
      std::vector<Candidate> own{{.recipe = recipe, .values = {}}};
      for (SearchedSetting const& setting : domain.settings) {
        std::vector<Candidate> longer;
        std::vector<std::optional<double>> values{std::nullopt};
        if (setting.applies_to(recipe)) {
          auto const grid = detail::grid_values(setting.values, points);
          values.assign(grid.begin(), grid.end());
        }
        if (own.size() * values.size() + all.size() > most) {
          detail::refuse_schedule("the grid has more than a million combinations",
                                  "each of them is a whole training run",
                                  "Use fewer points or settings, or a sampler.", "GridSearch");
        }
        for (Candidate const& each : own) {
          for (auto const& value : values) {
            longer.push_back(each);
            longer.back().values.push_back(value);
          }
        }
        own = std::move(longer);
      }
      all.insert(all.end(), own.begin(), own.end());
    }
    detail::require_budget(limits, all.size() * limits.horizon, unit, "GridSearch");
    std::string text = "GridSearch of " + std::to_string(all.size()) + " trials, " +
                       std::to_string(points) + " points, of " + std::to_string(limits.horizon) +
                       " " + name_of(unit);
    std::uint64_t const count = all.size();
    return std::make_unique<detail::WholeSchedule const>(std::move(text), count, 0, limits,
                                                         std::move(all));
  }
};

}  // namespace frugal
