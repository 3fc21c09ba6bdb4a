// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/schedule/whole_trials.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace frugal::detail {

FRUGAL_INLINE WholeSchedule::WholeSchedule(std::string text, std::uint64_t trials,
                                           std::uint64_t generation, SearchLimits const& limits,
                                           std::vector<Candidate> candidates)
    : text_(std::move(text)),
      trials_(trials),
      generation_(generation),
      horizon_(limits.horizon),
      candidates_(std::move(candidates)) {}

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

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::unique_ptr<SearchSchedule const> RandomSearch::bind(
    SearchLimits const& limits) const {
  if (trials == 0 && !limits.budget) detail::refuse_unlimited("RandomSearch", "trials", unit);
  std::uint64_t const count = trials != 0 ? trials : *limits.budget / limits.horizon;
  detail::require_budget(limits, std::max<std::uint64_t>(count, 1) * limits.horizon, unit,
                         "RandomSearch");
  std::uint64_t const own = limits.generation != 0 ? limits.generation : generation;
  detail::require_trials(own, "RandomSearch::generation");
  return std::make_unique<detail::WholeSchedule const>(
      "RandomSearch of " + std::to_string(count) + " trials of " + std::to_string(limits.horizon) +
          " " + name_of(unit) +
          (limits.learns ? ", in generations of " + std::to_string(own) : std::string()),
      count, limits.learns ? own : 0, limits);
}

FRUGAL_INLINE std::unique_ptr<SearchSchedule const> GridSearch::bind(
    SearchLimits const& limits) const {
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

}  // namespace frugal
