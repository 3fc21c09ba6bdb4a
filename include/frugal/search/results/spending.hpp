// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

/// The cost of one rung of a bracket, over all its trials. Each trial counts with what it trained since the
/// rung before.
struct RungCost {
  std::size_t bracket = 0, rung = 0;
  std::uint64_t budget = 0;  ///< of a trial, from its begin, in the unit of the results
  std::size_t trials = 0;    ///< that have ended it
  std::size_t promoted = 0;  ///< of these, opened for the next rung
  std::uint64_t samples = 0;
  double seconds = 0;
  std::optional<double> dollars{};  ///< nothing if no cost is known
  std::optional<double> best{};     ///< of the first objective, with its own sign
};

/// The cost of some trials together.
struct TrialsCost {
  std::size_t trials = 0;
  std::uint64_t samples = 0;
  double seconds = 0;
  std::optional<double> dollars{};  ///< nothing if no cost is known
};

namespace detail {

/// Cost of one rung of a trial alone.
std::optional<double> dollars_of_rung(SearchResults const& of, SearchTrial const& trial,
                                      std::size_t rung);

}  // namespace detail

/// Of each rung of each bracket that a trial has ended.
std::vector<RungCost> rung_costs(SearchResults const& of);

/// Of all repeats together, over all of their rungs.
TrialsCost repeat_cost(SearchResults const& of);

/// Of attempts without a result, by trials that are no repeats: errors, kills, and rungs that are not over.
TrialsCost attempt_cost(SearchResults const& of);

/// The training of all trials, as a share of training each of them up to the highest budget: in steps,
/// samples, seconds or money, as the rungs count. Repeats and trials that failed before a result are left
/// out of both. Nothing if there is no other trial, and in money without a price.
std::optional<double> share_of_full_training(SearchResults const& of);

/// The best value after some spending.
struct SpendingPoint {
  double seconds = 0;               ///< of all trials together, up to here
  std::optional<double> dollars{};  ///< likewise; nothing if no cost is known
  double best = 0;  ///< the best value of the first objective on any rung so far, with its own sign
};

/// Each improvement of the best value, in the order of the results, and the end of the search. Repeats cost,
/// and are no results of the search. Empty if no result is a finite number.
std::vector<SpendingPoint> best_over_spending(SearchResults const& of);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/spending.ipp>
#endif
