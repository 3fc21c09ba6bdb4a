// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/ranking.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE double value_to_minimise(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

FRUGAL_INLINE std::vector<ObjectiveValues> values_to_minimise(
    std::vector<ObjectiveValues> const& points, char const* where) {
  std::vector<ObjectiveValues> all = points;
  for (ObjectiveValues& each : all) {
    if (each.size() != all.front().size() || each.empty()) {
      throw SettingsError({.what = "a point has " + std::to_string(each.size()) +
                                   " objectives, and the first one " +
                                   std::to_string(all.front().size()),
                           .where = where,
                           .why = "points are compared objective by objective",
                           .fix = "Give each point one value or more, and all as many."});
    }
    for (double& value : each) value = value_to_minimise(value);
  }
  return all;
}

FRUGAL_INLINE bool dominates(ObjectiveValues const& one, ObjectiveValues const& other) {
  bool better = false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] > other[i]) return false;
    better = better || one[i] < other[i];
  }
  return better;
}

FRUGAL_INLINE std::vector<ObjectiveValues> front_of(std::vector<ObjectiveValues> points) {
  // A point can only be dominated by one before it in this order.
  std::ranges::sort(points);
  std::vector<ObjectiveValues> front;
  for (ObjectiveValues& each : points) {
    bool const stays = std::ranges::none_of(
        front, [&](ObjectiveValues const& of) { return of == each || dominates(of, each); });
    if (stays) front.push_back(std::move(each));
  }
  return front;
}

FRUGAL_INLINE double volume_of_front(std::vector<ObjectiveValues> front,
                                     ObjectiveValues const& reference) {
  std::size_t const m = reference.size();
  if (front.empty()) return 0;
  // The later ones, of which each is cut by those before it, are the smaller the worse they are in the last
  // objective.
  std::ranges::sort(front, [](ObjectiveValues const& one, ObjectiveValues const& other) {
    return std::pair(one.back(), one) > std::pair(other.back(), other);
  });
  if (m == 2) {
    double volume = 0, edge = reference[1];
    for (ObjectiveValues const& each : front) {  // the second objective falls, the first one rises
      volume += (reference[0] - each[0]) * (edge - each[1]);
      edge = each[1];
    }
    return volume;
  }
  double volume = 0;
  for (std::size_t k = 0; k < front.size(); ++k) {
    double own = 1;
    for (std::size_t i = 0; i < m; ++i) own *= reference[i] - front[k][i];
    // The part that it shares with the ones after it is counted with them.
    std::vector<ObjectiveValues> common;
    for (std::size_t l = k + 1; l < front.size(); ++l) {
      ObjectiveValues& corner = common.emplace_back(m);
      for (std::size_t i = 0; i < m; ++i) corner[i] = std::max(front[k][i], front[l][i]);
    }
    volume += own - volume_of_front(front_of(std::move(common)), reference);
  }
  return volume;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::vector<std::size_t> pareto_ranks(std::vector<ObjectiveValues> const& points) {
  auto const all = detail::values_to_minimise(points, "pareto_ranks");
  std::vector<std::size_t> ranks(all.size()), better(all.size());
  std::vector<std::vector<std::size_t>> worse(all.size());
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (detail::dominates(all[i], all[k])) worse[i].push_back(k), ++better[k];
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (better[i] == 0) front.push_back(i);
  }
  for (std::size_t rank = 0; !front.empty(); ++rank) {
    std::vector<std::size_t> next;
    for (std::size_t const i : front) {
      ranks[i] = rank;
      for (std::size_t const k : worse[i]) {
        if (--better[k] == 0) next.push_back(k);
      }
    }
    front = std::move(next);
  }
  return ranks;
}

FRUGAL_INLINE std::vector<double> crowding_distances(std::vector<ObjectiveValues> const& points) {
  auto const all = detail::values_to_minimise(points, "crowding_distances");
  std::vector<double> distances(all.size());
  if (all.empty()) return distances;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (std::size_t m = 0; m < all.front().size(); ++m) {
    std::vector<std::pair<double, std::size_t>> order;  // of equal ones by their place
    for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(all[i][m], i);
    std::ranges::sort(order);
    double const range = order.back().first - order.front().first;
    if (order.front().first == order.back().first) continue;
    distances[order.front().second] = distances[order.back().second] = infinite;
    for (std::size_t k = 1; k + 1 < order.size(); ++k) {
      double const gap = order[k + 1].first - order[k - 1].first;
      // Between two infinite values there is no distance.
      distances[order[k].second] += std::isnan(gap) ? 0 : gap / range;
    }
  }
  return distances;
}

FRUGAL_INLINE double hypervolume(std::vector<ObjectiveValues> const& points,
                                 ObjectiveValues const& reference) {
  std::vector<ObjectiveValues> all = points;
  all.push_back(reference);
  all = detail::values_to_minimise(all, "hypervolume");
  all.pop_back();
  std::erase_if(all, [&](ObjectiveValues const& each) {
    for (std::size_t i = 0; i < each.size(); ++i) {
      if (!(each[i] < reference[i])) return true;
    }
    return false;
  });
  if (all.empty()) return 0;
  if (reference.size() == 1) return reference[0] - std::ranges::min(all)[0];
  return detail::volume_of_front(detail::front_of(std::move(all)), reference);
}

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
