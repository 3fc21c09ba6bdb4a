// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/tpe.hpp>

#include <frugal/inline.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <cmath>
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

FRUGAL_INLINE Candidate Tpe::suggest(SearchDomain const& domain, SearchHistory const& seen,
                                     std::size_t trial, std::uint64_t seed) const {
  Draw draw({.index = trial, .seed = seed}, draw_stream("search.tpe"));
  std::vector<std::size_t> const lessons = detail::lessons(domain, seen, seen.trials.size(), trial);
  if (lessons.size() < startup) return uniform_candidate(domain, draw);
  bool const several = detail::objectives_of(seen) > 1;
  auto good = static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(lessons.size())));
  if (!several) good = std::min<std::size_t>(good, 25);
  TpeSplit split = split_trials(seen, lessons, good);
  avoid_others(domain, seen, trial, split.above);

  // Parameter 0 is the recipe, and parameter i + 1 is setting i.
  std::vector<std::size_t> joint;
  if (!several) {
    for (std::size_t i = 0; i <= domain.settings.size(); ++i) {
      bool const shared = i == 0 || applies_to_all(domain, domain.settings[i - 1]);
      if (shared && !has_one_value(values_of(domain, i))) joint.push_back(i);
    }
  }
  std::vector<std::optional<double>> values(domain.settings.size() + 1);
  choose(domain, seen, split, joint, several, draw, values);
  if (!values[0]) choose(domain, seen, split, {0}, several, draw, values);
  Candidate candidate{.recipe = static_cast<std::size_t>(*values[0])};
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    bool const applies = domain.settings[i].applies_to(candidate.recipe);
    if (applies && !values[i + 1]) {
      choose(domain, seen, split, {i + 1}, several, draw, values);
    }
    candidate.values.push_back(applies ? values[i + 1] : std::nullopt);
  }
  return candidate;
}

FRUGAL_INLINE void Tpe::require() const {
  detail::require_least(name, "candidates", candidates, 1, "a suggestion is the best one of them");
}

FRUGAL_INLINE std::string Tpe::text() const {
  return std::string(name) + ", startup " + std::to_string(startup) + ", candidates " +
         std::to_string(candidates) + (constant_liar ? ", constant liar" : "");
}

FRUGAL_INLINE void Tpe::avoid_others(SearchDomain const& domain, SearchHistory const& seen,
                                     std::size_t trial, std::vector<std::size_t>& above) const {
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    SearchTrial const& each = seen.trials[i];
    if (i == trial || each.repeats || has_lesson(each)) continue;
    bool const avoided = each.state == TrialState::failed || constant_liar;
    if (avoided && is_candidate_of(domain, each.candidate)) above.push_back(i);
  }
  std::ranges::sort(above);  // newer trials weigh more
}

FRUGAL_INLINE Parzen Tpe::density(SearchDomain const& domain, SearchHistory const& seen,
                                  std::vector<std::size_t> const& trials,
                                  std::vector<std::size_t> const& parameters, bool alike) {
  std::vector<Distribution> kinds;
  for (std::size_t const each : parameters) kinds.push_back(values_of(domain, each));
  std::vector<std::vector<double>> observed;
  for (std::size_t const number : trials) {
    std::vector<double> point;
    for (std::size_t const each : parameters) {
      if (auto const value = value_of(seen.trials[number].candidate, each)) {
        point.push_back(*value);
      }
    }
    if (point.size() == parameters.size()) observed.push_back(std::move(point));
  }
  if (!alike) return {std::move(kinds), observed};
  std::vector<double> weights(observed.size(), 1.0);
  return {std::move(kinds), observed, std::move(weights)};
}

FRUGAL_INLINE void Tpe::choose(SearchDomain const& domain, SearchHistory const& seen,
                               TpeSplit const& split, std::vector<std::size_t> const& parameters,
                               bool several, Draw& draw,
                               std::vector<std::optional<double>>& values) const {
  if (parameters.empty()) return;
  if (parameters.size() == 1 && has_one_value(values_of(domain, parameters[0]))) {
    values[parameters[0]] = value_at(values_of(domain, parameters[0]), 0);
    return;
  }
  Parzen const below = density(domain, seen, split.below, parameters, several);
  Parzen const above = density(domain, seen, split.above, parameters, false);
  std::vector<double> best;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates; ++i) {
    std::vector<double> sample = below.sample(draw);
    double const ratio = below.log_density(sample) - above.log_density(sample);
    if (best.empty() || ratio > most) most = ratio, best = std::move(sample);
  }
  for (std::size_t k = 0; k < parameters.size(); ++k) values[parameters[k]] = best[k];
}

}  // namespace frugal
