// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/data/sampling/draw.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/distribution.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

/// NSGA-II, for several objectives: generation g is the trials from g times `population` on, and its parents
/// are the best of the parents and the children of the generation before, by front, and within a front by
/// distance from the neighbours. A child takes each parameter from one of two parents, each the better one of
/// two drawn ones, and some of its parameters are drawn again.
///
/// A candidate is a function of the trials of earlier generations. Those should be over when it is asked for:
/// generation() says so. Failed trials are no parents, nor are those without results; if there are no parents
/// at all, candidates are random. Trials that were pruned come after complete ones.
///
/// A child has the recipe of one of its parents. A setting that the chosen parent lacks comes from the other
/// one, or is drawn; Optuna draws all settings that only some recipes have.
///
/// Cost    the selection of every generation before: (2 population)^2 comparisons each.
/// Errors  require(): SettingsError for a population below 2, and for probabilities out of range.
/// Source  Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II" (2002); Syswerda,
///         "Uniform crossover in genetic algorithms" (1989). The defaults are Optuna's.
struct Nsga2 {
  static constexpr std::string_view name = "nsga2";
  static constexpr bool learns = true;

  std::size_t population = 50;  ///< trials of a generation, and parents
  double crossover = 0.9;       ///< probability of two parents instead of one
  double swap = 0.5;            ///< probability that a parameter comes from the second parent
  /// Probability that a parameter is drawn again; nothing: 1 / the number of parameters.
  std::optional<double> mutation{};

  FRUGAL_INLINE Candidate suggest(SearchDomain const& domain, SearchHistory const& seen,
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

  /// Numbers of the trials that are the parents of a generation, the best first; none for generation 0.
  FRUGAL_INLINE std::vector<std::size_t> parents(SearchDomain const& domain,
                                                 SearchHistory const& seen, std::size_t of) const {
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

  FRUGAL_INLINE void require() const {
    detail::require_least(name, "population", population, 2, "children have two parents");
    detail::require_probability(name, "crossover", crossover);
    detail::require_probability(name, "swap", swap);
    if (mutation) detail::require_probability(name, "mutation", *mutation);
  }
  /// Trial n depends on the trials before n / population * population, which should all be over.
  /// For the journal: searches whose samplers differ are not the same.
  FRUGAL_INLINE std::string text() const {
    return std::string(name) + ", population " + std::to_string(population) + ", crossover " +
           detail::shortest_text(crossover) + ", swap " + detail::shortest_text(swap) +
           (mutation ? ", mutation " + detail::shortest_text(*mutation) : std::string());
  }
  std::size_t generation() const { return population; }

  friend bool operator==(Nsga2 const&, Nsga2 const&) = default;

 private:
  FRUGAL_INLINE void cross(SearchDomain const& domain, Candidate& child, Candidate const& other,
                           Draw& draw) const {
    Candidate const one = child;
    if (draw.chance(swap)) child.recipe = other.recipe;
    for (std::size_t i = 0; i < domain.settings.size(); ++i) {
      bool const second = draw.chance(swap);
      std::optional<double> const& wanted = (second ? other : one).values[i];
      child.values[i] = wanted ? wanted : (second ? one : other).values[i];
    }
    fit_candidate(domain, child, draw);
  }

  FRUGAL_INLINE void mutate(SearchDomain const& domain, Candidate& child, Draw& draw) const {
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
};

static_assert(SearchSampler<Nsga2>);

}  // namespace frugal
