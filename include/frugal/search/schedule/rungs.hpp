// SPDX-License-Identifier: Apache-2.0
// R: the most that a trial trains, r: the least, both in steps or samples; eta: one trial in eta goes on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// Trials that train up to the same point before they are compared.
struct Rung {
  std::uint64_t trials = 0;
  std::uint64_t budget = 0;  ///< steps or samples of each trial, counted from its begin

  friend bool operator==(Rung const&, Rung const&) = default;
};

/// The rungs of one successive halving, the lowest first.
struct Bracket {
  std::vector<Rung> rungs{};

  /// Steps or samples of all trials, if each goes on from where it was: nothing is trained twice.
  std::uint64_t cost() const {
    std::uint64_t all = 0, before = 0;
    for (Rung const& each : rungs) {
      all += each.trials * (each.budget - before);
      before = each.budget;
    }
    return all;
  }
};

namespace detail {

FRUGAL_INLINE void require_rungs(std::uint64_t least, std::uint64_t most, std::uint64_t eta,
                                 char const* where) {
  auto const refuse = [&](std::string what, char const* why, char const* fix) {
    throw SettingsError({.what = std::move(what), .where = where, .why = why, .fix = fix});
  };
  if (eta < 2) {
    refuse("eta is " + std::to_string(eta), "one trial in eta goes on to the next rung",
           "Give 2 or more; 3 and 4 are usual.");
  }
  if (least == 0 || least > most) {
    refuse(
        "the least budget is " + std::to_string(least) + ", and the most " + std::to_string(most),
        "a trial of the lowest rung trains the least, and the winner the most",
        "Give a least budget from 1 to the most.");
  }
}

}  // namespace detail

/// Successive halving: `trials` train up to the least budget, the best 1/eta of them up to eta times that, and
/// so on, until one is left or the next rung would be beyond the most. The last rung is at the most.
///
/// Source  Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization"
///         (2016); the rungs are those of Li et al., "A system for massively parallel hyperparameter tuning"
///         (2020), section 2, counted back from the most: R, R / eta, R / eta^2, and so on.
FRUGAL_INLINE Bracket successive_halving(std::uint64_t trials, std::uint64_t least,
                                         std::uint64_t most, std::uint64_t eta) {
  detail::require_rungs(least, most, eta, "successive_halving");
  if (trials == 0) {
    throw SettingsError({.what = "a bracket of no trials",
                         .where = "successive_halving",
                         .why = "there is nothing to compare",
                         .fix = "Give one trial or more."});
  }
  std::vector<std::uint64_t> budgets{most};
  while (budgets.back() / eta >= least) budgets.push_back(budgets.back() / eta);
  std::ranges::reverse(budgets);
  Bracket bracket;
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    bracket.rungs.push_back({.trials = trials, .budget = budgets[i]});
    // Where few are left they go to the end at once.
    if (trials == 1) bracket.rungs.back().budget = most;
    if (trials == 1) break;
    trials = std::max<std::uint64_t>(trials / eta, 1);
  }
  return bracket;
}

/// The brackets of Hyperband: successive halving with many trials that begin with the least budget, then with
/// fewer that begin with more, up to some that all train the most. It spends about as much on each, and does
/// not rely on what short runs say of long ones.
///
/// Source  Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization" (JMLR 2018),
///         algorithm 1.
FRUGAL_INLINE std::vector<Bracket> hyperband(std::uint64_t least, std::uint64_t most,
                                             std::uint64_t eta) {
  detail::require_rungs(least, most, eta, "hyperband");
  std::vector<std::uint64_t> powers{1};  // of eta; most / powers[s] is the lowest rung of bracket s
  while (most / (powers.back() * eta) >= least) powers.push_back(powers.back() * eta);
  std::vector<Bracket> brackets;
  for (std::size_t s = powers.size(); s-- != 0;) {
    std::uint64_t const product = powers.size() * powers[s];
    std::uint64_t const trials = (product + s) / (s + 1);  // rounded up
    brackets.push_back(successive_halving(trials, most / powers[s], most, eta));
  }
  return brackets;
}

}  // namespace frugal
