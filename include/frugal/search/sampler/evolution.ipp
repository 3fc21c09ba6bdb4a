// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/evolution.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/candidate.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE double position_of(Distribution const& of, double value) {
  if (auto const* const real = std::get_if<Uniform>(&of)) {
    return (value - real->low) / (real->high - real->low);
  }
  double low = 0, high = 1;
  if (auto const* const log = std::get_if<LogUniform>(&of)) {
    low = log->low, high = log->high;
  } else {
    Int const& whole = std::get<Int>(of);
    low = static_cast<double>(whole.low) - 0.5, high = static_cast<double>(whole.high) + 0.5;
  }
  return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
}

FRUGAL_INLINE double other_index(double count, double value, Draw& draw) {
  auto const drawn = static_cast<double>(draw.below(static_cast<std::uint64_t>(count) - 1));
  return drawn < value ? drawn : drawn + 1;
}

FRUGAL_INLINE double mutated_value(Distribution const& of, double value, Draw& draw) {
  if (std::holds_alternative<Choice>(of)) {
    return other_index(static_cast<double>(*count_of(of)), value, draw);
  }
  bool const near = draw.chance(0.5);
  auto const* const whole = std::get_if<Int>(&of);
  if (whole != nullptr && !whole->log) {
    auto const count = static_cast<double>(*count_of(of));
    auto const low = static_cast<double>(whole->low), step = static_cast<double>(whole->step);
    double const index = std::round((value - low) / step);
    if (!near) return low + step * other_index(count, index, draw);
    bool const up = draw.chance(0.5);
    if (index == 0) return low + step;
    return low + step * (index + 1 == count || !up ? index - 1 : index + 1);
  }
  double const from = position_of(of, value);
  double to = near ? from + draw.uniform(-0.1, 0.1) : draw.uniform();
  if (to < 0) to = -to;
  if (to >= 1) to = 2 - to;
  double const found = value_at(of, to);
  if (whole == nullptr || found != value) return found;
  // A large whole number is wider than a small step.
  bool const up = to >= from;
  if (value == static_cast<double>(whole->low)) return value + 1;
  return value == static_cast<double>(whole->high) || !up ? value - 1 : value + 1;
}

FRUGAL_INLINE void mutate_candidate(SearchDomain const& domain, Candidate& candidate, Draw& draw) {
  // Parameter 0 is the recipe, and parameter i + 1 is setting i.
  std::vector<std::size_t> parameters;
  if (domain.recipes.size() > 1) parameters.push_back(0);
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    bool const applies = domain.settings[i].applies_to(candidate.recipe);
    if (applies && !has_one_value(domain.settings[i].values)) parameters.push_back(i + 1);
  }
  if (parameters.empty()) return;
  std::size_t const chosen = parameters[draw.below(parameters.size())];
  if (chosen != 0) {
    double& value = candidate.values[chosen - 1].value();
    value = mutated_value(domain.settings[chosen - 1].values, value, draw);
    return;
  }
  candidate.recipe = static_cast<std::size_t>(other_index(
      static_cast<double>(domain.recipes.size()), static_cast<double>(candidate.recipe), draw));
  fit_candidate(domain, candidate, draw);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Candidate Evolution::suggest(SearchDomain const& domain, SearchHistory const& seen,
                                           std::size_t trial, std::uint64_t seed) const {
  Draw draw({.index = trial, .seed = seed}, draw_stream("search.evolution"));
  std::vector<std::size_t> members = detail::lessons(domain, seen, seen.trials.size(), trial);
  if (members.empty() || members.size() < population) return uniform_candidate(domain, draw);
  members.erase(members.begin(), members.end() - static_cast<std::ptrdiff_t>(population));
  std::vector<std::size_t> const order = detail::trials_best_first(seen, std::move(members));
  std::size_t best = order.size() - 1;
  for (std::size_t i = 0; i < tournament; ++i) {
    best = std::min<std::size_t>(best, draw.below(order.size()));
  }
  Candidate child = seen.trials[order[best]].candidate;
  detail::mutate_candidate(domain, child, draw);
  return child;
}

FRUGAL_INLINE void Evolution::require() const {
  detail::require_least(name, "population", population, 1, "parents are chosen from it");
  detail::require_least(name, "tournament", tournament, 1, "the parent is the best one of it");
}

FRUGAL_INLINE std::string Evolution::text() const {
  return std::string(name) + ", population " + std::to_string(population) + ", tournament " +
         std::to_string(tournament);
}

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
