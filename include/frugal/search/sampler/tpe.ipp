// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/tpe.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace frugal {

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
