// SPDX-License-Identifier: Apache-2.0
// R: the most that a trial trains, r: the least, both in steps or samples; eta: one trial in eta goes on.
#pragma once

#include <cstdint>
#include <vector>

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

void require_rungs(std::uint64_t least, std::uint64_t most, std::uint64_t eta, char const* where);

}  // namespace detail

/// Successive halving: `trials` train up to the least budget, the best 1/eta of them up to eta times that, and
/// so on, until one is left or the next rung would be beyond the most. The last rung is at the most.
///
/// Source  Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization"
///         (2016); the rungs are those of Li et al., "A system for massively parallel hyperparameter tuning"
///         (2020), section 2, counted back from the most: R, R / eta, R / eta^2, and so on.
Bracket successive_halving(std::uint64_t trials, std::uint64_t least, std::uint64_t most,
                           std::uint64_t eta);

/// The brackets of Hyperband: successive halving with many trials that begin with the least budget, then with
/// fewer that begin with more, up to some that all train the most. It spends about as much on each, and does
/// not rely on what short runs say of long ones.
///
/// Source  Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization" (JMLR 2018),
///         algorithm 1.
std::vector<Bracket> hyperband(std::uint64_t least, std::uint64_t most, std::uint64_t eta);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/schedule/rungs.ipp>
#endif
