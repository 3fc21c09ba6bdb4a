// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/nsga2.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/distribution.hpp>

#include <algorithm>

namespace frugal {

FRUGAL_INLINE Candidate Nsga2::suggest(SearchDomain const& domain, SearchHistory const& seen,
                                       std::size_t trial, std::uint64_t seed) const {
  Draw draw({.index = trial, .seed = seed}, draw_stream("search.nsga2"));
  std::vector<std::size_t> const order = parents(domain, seen, trial / population);
  if (order.empty()) return uniform_candidate(domain, draw);
  // The order is best first, so the better one of two is the smaller place.
  std::size_t const one = std::min(draw.below(order.size()), draw.below(order.size()));
  Candidate child = seen.trials[order[one]].candidate;
  if (order.size() > 1 && draw.chance(crossover)) {
    std::size_t other = std::min(draw.below(order.size() - 1), draw.below(order.size() - 1));
    if (other >= one) ++other;
    cross(domain, child, seen.trials[order[other]].candidate, draw);
  }
  mutate(domain, child, draw);
  return child;
}

FRUGAL_INLINE std::vector<std::size_t> Nsga2::parents(SearchDomain const& domain,
                                                      SearchHistory const& seen,
                                                      std::size_t of) const {
  std::vector<std::size_t> chosen;
  if (of == 0) return chosen;
  std::size_t const end = of * population;
  std::vector<std::size_t> const all = detail::lessons(domain, seen, end, end);
  for (std::size_t g = 0, next = 0; g < of; ++g) {
    for (; next < all.size() && all[next] < (g + 1) * population; ++next) {
      chosen.push_back(all[next]);
    }
    std::ranges::sort(chosen);  // of equal ones the older one is better
    chosen = detail::trials_best_first(seen, std::move(chosen));
    if (chosen.size() > population) chosen.resize(population);
  }
  return chosen;
}

FRUGAL_INLINE void Nsga2::require() const {
  detail::require_least(name, "population", population, 2, "children have two parents");
  detail::require_probability(name, "crossover", crossover);
  detail::require_probability(name, "swap", swap);
  if (mutation) detail::require_probability(name, "mutation", *mutation);
}

FRUGAL_INLINE std::string Nsga2::text() const {
  return std::string(name) + ", population " + std::to_string(population) + ", crossover " +
         detail::shortest_text(crossover) + ", swap " + detail::shortest_text(swap) +
         (mutation ? ", mutation " + detail::shortest_text(*mutation) : std::string());
}

FRUGAL_INLINE void Nsga2::cross(SearchDomain const& domain, Candidate& child,
                                Candidate const& other, Draw& draw) const {
  Candidate const one = child;
  if (draw.chance(swap)) child.recipe = other.recipe;
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    bool const second = draw.chance(swap);
    std::optional<double> const& wanted = (second ? other : one).values[i];
    child.values[i] = wanted ? wanted : (second ? one : other).values[i];
  }
  fit_candidate(domain, child, draw);
}

FRUGAL_INLINE void Nsga2::mutate(SearchDomain const& domain, Candidate& child, Draw& draw) const {
  std::size_t parameters = domain.recipes.size() > 1 ? 1 : 0;
  for (SearchedSetting const& each : domain.settings) {
    if (each.applies_to(child.recipe) && !has_one_value(each.values)) ++parameters;
  }
  double const probability =
      mutation.value_or(1 / static_cast<double>(std::max<std::size_t>(parameters, 1)));
  if (domain.recipes.size() > 1 && draw.chance(probability)) {
    child.recipe = draw.below(domain.recipes.size());
  }
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    if (child.values[i] && draw.chance(probability)) {
      child.values[i] = draw_value(domain.settings[i].values, draw);
    }
  }
  fit_candidate(domain, child, draw);
}

}  // namespace frugal
