// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/data/sampling/draw.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/distribution.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// Where a value is from 0 to 1, so that value_at() gives it back; for numbers.
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

/// One of `count` numbers from 0 on, but not `value`; each as likely.
FRUGAL_INLINE double other_index(double count, double value, Draw& draw) {
  auto const drawn = static_cast<double>(draw.below(static_cast<std::uint64_t>(count) - 1));
  return drawn < value ? drawn : drawn + 1;
}

/// Another value, for a distribution that has more than one: of names any other one. A number moves to a
/// neighbour or is drawn again, with the same probability: neighbours are the next step of whole numbers, and
/// otherwise, by the logarithm too, numbers within a tenth of the range, reflected at its ends.
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

/// The candidate with another value of one parameter: the recipe or one of its settings, each as likely. With
/// the recipe, settings that only the old one had go, and those that only the new one has are drawn.
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

  FRUGAL_INLINE Candidate suggest(SearchDomain const& domain, SearchHistory const& seen,
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

  FRUGAL_INLINE void require() const {
    detail::require_least(name, "population", population, 1, "parents are chosen from it");
    detail::require_least(name, "tournament", tournament, 1, "the parent is the best one of it");
  }
  /// For the journal: searches whose samplers differ are not the same.
  FRUGAL_INLINE std::string text() const {
    return std::string(name) + ", population " + std::to_string(population) + ", tournament " +
           std::to_string(tournament);
  }
  std::size_t generation() const { return 0; }

  friend bool operator==(Evolution const&, Evolution const&) = default;
};

static_assert(SearchSampler<Evolution>);

}  // namespace frugal
