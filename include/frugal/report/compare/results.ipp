// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/results.hpp>

#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::optional<Spread> ComparisonResults::paid_seconds(
    ComparedRecipe const& row) const {
  if (row.failed() || row.trials.empty()) return std::nullopt;
  if (!target.given()) return row.spread(ComparedRecipe::of_fit);
  return row.reached() == row.trials.size() ? row.seconds_to_target() : std::nullopt;
}

FRUGAL_INLINE std::optional<Spread> ComparisonResults::dollars(ComparedRecipe const& row) const {
  auto const seconds = paid_seconds(row);
  if (!seconds || !dollars_per_hour) return std::nullopt;
  return seconds->times(*dollars_per_hour / 3600);
}

FRUGAL_INLINE std::optional<Spread> ComparisonResults::paid_ratio(ComparedRecipe const& row) const {
  if (!paid_seconds(row)) return std::nullopt;
  return target.given() ? row.ratio(baseline(), ComparedRecipe::of_target)
                        : row.ratio(baseline(), ComparedRecipe::of_fit);
}

}  // namespace frugal
