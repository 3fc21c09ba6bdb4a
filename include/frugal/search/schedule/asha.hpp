// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/search/schedule/rungs.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

namespace frugal {

namespace detail {

/// The places of the results that may go on to the next rung, the best first: one in eta of those that have
/// come to this one so far.
std::vector<std::size_t> promotable(std::vector<ObjectiveValues> const& results, std::size_t eta);

class AshaSchedule final : public SearchSchedule {
 public:
  AshaSchedule(std::uint64_t trials, std::vector<std::uint64_t> budgets, std::size_t eta,
               RungUnit unit, SearchLimits const& limits);

  std::vector<std::vector<std::uint64_t>> rungs() const override { return {budgets_}; }
  bool is_deterministic() const override { return false; }
  std::string text() const override {
    return "Asha<Eta<" + std::to_string(eta_) + ">> of " + std::to_string(trials_) + " trials" +
           budgets_text(budgets_, unit_);
  }

  SearchDecision next(SearchHistory const& history) const override {
    using Kind = SearchDecision::Kind;
    OwnTrials const own = OwnTrials::of(history);
    for (std::size_t k = budgets_.size() - 1; k-- != 0;) {
      std::vector<std::size_t> members;
      std::vector<ObjectiveValues> results;
      for (std::size_t i = 0; i < history.trials.size(); ++i) {
        SearchTrial const& trial = history.trials[i];
        // One that has ended by itself at an earlier rung competes here as it is.
        bool const came = trial.rungs.size() > k || (trial.ended && !trial.rungs.empty());
        if (trial.repeats || !came) continue;
        members.push_back(i);
        results.push_back(values_at(trial, k, objectives_));
      }
      for (std::size_t const place : promotable(results, eta_)) {
        SearchTrial const& trial = history.trials[members[place]];
        if (!trial.is_over() && trial.opened == k + 1) {
          return {.kind = Kind::promote, .trial = members[place]};
        }
      }
    }
    if (own.count < trials_) return {.kind = Kind::create, .visible = history.trials.size()};
    if (own.open) return {.kind = Kind::wait};
    if (auto const last = without_result(history)) return {.kind = Kind::promote, .trial = *last};
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      SearchTrial const& trial = history.trials[i];
      if (!trial.repeats && !trial.is_over()) return {.kind = Kind::prune, .trial = i};
    }
    return {.kind = Kind::done};
  }

 private:
  /// If no trial has come to the end: the best of the highest rung that has one.
  std::optional<std::size_t> without_result(SearchHistory const& history) const {
    std::size_t highest = 0;
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < history.trials.size(); ++i) {
      SearchTrial const& trial = history.trials[i];
      if (trial.repeats) continue;
      if (trial.state == TrialState::complete) return std::nullopt;
      if (trial.is_over() || trial.rungs.size() < highest) continue;
      if (trial.rungs.size() > highest) members.clear();
      highest = trial.rungs.size();
      members.push_back(i);
    }
    std::vector<ObjectiveValues> results;
    for (std::size_t const i : members) {
      results.push_back(values_at(history.trials[i], highest, objectives_));
    }
    for (std::size_t const place : best_first(results)) {
      if (is_finite(results[place])) return members[place];
    }
    return std::nullopt;
  }

  std::uint64_t trials_;
  std::vector<std::uint64_t> budgets_;
  std::size_t eta_;
  RungUnit unit_;
  std::size_t objectives_;
};

}  // namespace detail

/// Successive halving that never waits: a worker takes the best trial that is among the first one in eta of
/// those that have come to its rung so far, or begins a new trial. Decisions depend on the order in which
/// results arrive; the journal has that order, and a replay of it decides alike.
///
/// Source  Li et al., "A system for massively parallel hyperparameter tuning" (MLSys 2020), algorithm 2.
template <class Rate = Eta<3>>
struct Asha {
  std::uint64_t trials = 64;
  std::uint64_t least = 0;  ///< as in SuccessiveHalving
  RungUnit unit = RungUnit::steps;

  std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const {
    std::uint64_t const first = detail::first_rung(least, limits.horizon, Rate::value);
    // Enough trials that every rung has one.
    std::uint64_t enough = 1;
    while (enough * first < limits.horizon) enough *= Rate::value;
    Bracket const bracket = successive_halving(enough, first, limits.horizon, Rate::value);
    std::vector<std::uint64_t> budgets;
    for (Rung const& each : bracket.rungs) budgets.push_back(each.budget);
    detail::require_trials(trials, "Asha");
    detail::require_no_generations(limits, "Asha");
    detail::require_budget(limits, budgets.back(), unit, "Asha");
    return std::make_unique<detail::AshaSchedule const>(trials, std::move(budgets), Rate::value,
                                                        unit, limits);
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/schedule/asha.ipp>
#endif
