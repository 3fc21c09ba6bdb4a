// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/schedule/rungs.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace frugal::detail {

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

}  // namespace frugal::detail

namespace frugal {

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
