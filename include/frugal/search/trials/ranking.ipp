// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/ranking.hpp>

#include <frugal/inline.hpp>

#include <numeric>

namespace frugal {

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
