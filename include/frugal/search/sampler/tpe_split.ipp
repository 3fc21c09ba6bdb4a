// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/tpe_split.hpp>

#include <frugal/inline.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <limits>
#include <utility>

namespace frugal {

FRUGAL_INLINE std::vector<std::size_t> hypervolume_subset(
    std::vector<ObjectiveValues> const& points, std::size_t count) {
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (count >= points.size()) return order;
  std::ranges::sort(order, [&](std::size_t one, std::size_t other) {
    return points[one] == points[other] ? one < other : points[one] < points[other];
  });
  std::vector<std::size_t> left, repeated, chosen;
  for (std::size_t const i : order) {
    bool const equal = !left.empty() && points[left.back()] == points[i];
    (equal ? repeated : left).push_back(i);
  }
  if (left.size() <= count) {
    std::ranges::sort(repeated);
    chosen = left;
    chosen.insert(chosen.end(), repeated.begin(),
                  repeated.begin() + static_cast<std::ptrdiff_t>(count - left.size()));
    return chosen;
  }
  if (!std::ranges::all_of(points, is_finite)) {
    left.resize(count);
    return left;
  }
  ObjectiveValues reference = points.front();
  for (ObjectiveValues const& each : points) {
    for (std::size_t m = 0; m < each.size(); ++m) reference[m] = std::max(reference[m], each[m]);
  }
  for (double& each : reference) {
    each = std::max(1.1 * each, 0.9 * each);
    if (each == 0) each = 1e-12;
  }
  // A point adds less the more points are chosen, so an earlier volume is a bound.
  std::vector<double> bounds(left.size(), std::numeric_limits<double>::infinity());
  std::vector<ObjectiveValues> front;
  double volume = 0;
  while (chosen.size() < count) {
    std::vector<bool> current(left.size());
    while (true) {
      auto const best = static_cast<std::size_t>(std::ranges::max_element(bounds) - bounds.begin());
      front.push_back(points[left[best]]);
      if (current[best]) {
        chosen.push_back(left[best]);
        volume = hypervolume(front, reference);
        bounds[best] = -1;
        break;
      }
      bounds[best] = std::max(hypervolume(front, reference) - volume, 0.0);
      current[best] = true;
      front.pop_back();
    }
  }
  return chosen;
}

FRUGAL_INLINE TpeSplit split_trials(SearchHistory const& seen, std::vector<std::size_t> numbers,
                                    std::size_t count) {
  TpeSplit split;
  for (std::vector<std::size_t> const& group :
       detail::groups_by_progress(seen, std::move(numbers))) {
    std::size_t const wanted = std::min(count - split.below.size(), group.size());
    std::vector<ObjectiveValues> const points = detail::lesson_values(seen, group);
    std::vector<bool> good(group.size());
    if (points.front().size() == 1) {
      std::vector<std::size_t> const order = best_first(points);
      for (std::size_t i = 0; i < wanted; ++i) good[order[i]] = true;
    } else {
      std::vector<std::size_t> const ranks = pareto_ranks(points);
      std::size_t taken = 0;
      for (std::size_t rank = 0; taken < wanted; ++rank) {
        std::vector<std::size_t> members;
        std::vector<ObjectiveValues> front;
        for (std::size_t i = 0; i < points.size(); ++i) {
          if (ranks[i] == rank) members.push_back(i), front.push_back(points[i]);
        }
        std::size_t const part = std::min(wanted - taken, members.size());
        for (std::size_t const place : hypervolume_subset(front, part)) good[members[place]] = true;
        taken += part;
      }
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      (good[i] ? split.below : split.above).push_back(group[i]);
    }
  }
  std::ranges::sort(split.below);
  std::ranges::sort(split.above);
  return split;
}

}  // namespace frugal
