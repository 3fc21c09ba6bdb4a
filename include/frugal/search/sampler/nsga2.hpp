// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
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

  Candidate suggest(SearchDomain const& domain, SearchHistory const& seen, std::size_t trial,
                    std::uint64_t seed) const;

  /// Numbers of the trials that are the parents of a generation, the best first; none for generation 0.
  std::vector<std::size_t> parents(SearchDomain const& domain, SearchHistory const& seen,
                                   std::size_t of) const;

  void require() const;
  /// Trial n depends on the trials before n / population * population, which should all be over.
  /// For the journal: searches whose samplers differ are not the same.
  std::string text() const;
  std::size_t generation() const { return population; }

  friend bool operator==(Nsga2 const&, Nsga2 const&) = default;

 private:
  void cross(SearchDomain const& domain, Candidate& child, Candidate const& other,
             Draw& draw) const;

  void mutate(SearchDomain const& domain, Candidate& child, Draw& draw) const;
};

static_assert(SearchSampler<Nsga2>);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/nsga2.ipp>
#endif
