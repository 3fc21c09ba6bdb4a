// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include <frugal/inline.hpp>
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
FRUGAL_INLINE std::vector<std::size_t> best_first(std::vector<ObjectiveValues> const& results) {
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (results.empty()) return order;
  std::vector<bool> finite(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) finite[i] = is_finite(results[i]);
  if (results.front().size() == 1) {
    std::ranges::sort(order, [&](std::size_t one, std::size_t other) {
      if (finite[one] != finite[other]) return bool{finite[one]};
      if (finite[one] && results[one][0] != results[other][0]) {
        return results[one][0] < results[other][0];
      }
      return one < other;
    });
    return order;
  }
  std::vector<std::size_t> const ranks = pareto_ranks(results);
  std::vector<double> distances(results.size());
  for (std::size_t rank = 0; rank <= std::ranges::max(ranks); ++rank) {
    std::vector<std::size_t> members;
    std::vector<ObjectiveValues> front;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (ranks[i] == rank) members.push_back(i), front.push_back(results[i]);
    }
    std::vector<double> const found = crowding_distances(front);
    for (std::size_t i = 0; i < members.size(); ++i) distances[members[i]] = found[i];
  }
  std::ranges::sort(order, [&](std::size_t one, std::size_t other) {
    if (finite[one] != finite[other]) return bool{finite[one]};
    if (ranks[one] != ranks[other]) return ranks[one] < ranks[other];
    if (distances[one] != distances[other]) return distances[one] > distances[other];
    return one < other;
  });
  return order;
}

}  // namespace frugal
