// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// Where a value is from 0 to 1, so that value_at() gives it back; for numbers.
double position_of(Distribution const& of, double value);

/// One of `count` numbers from 0 on, but not `value`; each as likely.
double other_index(double count, double value, Draw& draw);

/// Another value, for a distribution that has more than one: of names any other one. A number moves to a
/// neighbour or is drawn again, with the same probability: neighbours are the next step of whole numbers, and
/// otherwise, by the logarithm too, numbers within a tenth of the range, reflected at its ends.
double mutated_value(Distribution const& of, double value, Draw& draw);

/// The candidate with another value of one parameter: the recipe or one of its settings, each as likely. With
/// the recipe, settings that only the old one had go, and those that only the new one has are drawn.
void mutate_candidate(SearchDomain const& domain, Candidate& candidate, Draw& draw);

}  // namespace detail

/// Regularised evolution: the newest trials are the population, the best of a few that are drawn from it is
/// the parent, and the candidate is the parent with one parameter changed. Old trials leave the population,
/// even good ones, so that a value which was good by luck does not stay.
///
/// Candidates are random until the population is full. Only trials with results are members, and failed ones
/// are none; the newest are those with the highest numbers. The best member is the one that comes first by
/// progress, then by value, or with several objectives by Pareto front and distance. The draws of a tournament
/// are with replacement, as in the paper.
///
/// Errors  require(): SettingsError for an empty population or tournament.
/// Source  Real et al., "Regularized evolution for image classifier architecture search" (AAAI 2019),
///         algorithm 1. The paper mutates names only; numbers are ours: mutated_value().
struct Evolution {
  static constexpr std::string_view name = "evolution";
  static constexpr bool learns = true;

  std::size_t population = 20;  ///< newest trials among which parents are chosen
  std::size_t tournament = 5;   ///< draws, of which the best one is the parent

  Candidate suggest(SearchDomain const& domain, SearchHistory const& seen, std::size_t trial,
                    std::uint64_t seed) const;

  void require() const;
  /// For the journal: searches whose samplers differ are not the same.
  std::string text() const;
  std::size_t generation() const { return 0; }

  friend bool operator==(Evolution const&, Evolution const&) = default;
};

static_assert(SearchSampler<Evolution>);

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
#include <frugal/search/sampler/evolution.ipp>
#endif
