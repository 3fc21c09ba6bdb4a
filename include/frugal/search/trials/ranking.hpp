// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <frugal/search/trials/pareto.hpp>

namespace frugal {

/// Whether every value is a finite number.
inline bool is_finite(ObjectiveValues const& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

/// The indices of these results, the best first: by value, or with several objectives by Pareto front and
/// within a front by distance from the neighbours. Equal ones keep their order, so that the ranking depends
/// on nothing but the values. Results that are not finite come last.
///
/// Source  for several objectives Schmucker et al., "Multi-objective asynchronous successive halving" (2021),
///         with the crowding distance of NSGA-II.
std::vector<std::size_t> best_first(std::vector<ObjectiveValues> const& results);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/trials/ranking.ipp>
#endif
