// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// Brackets one after the other. All trials of a rung end before some of them go on, so that decisions do not
/// depend on the order in which results arrive.
class BracketSchedule final : public SearchSchedule {
 public:
  BracketSchedule(std::string text, std::vector<Bracket> brackets, SearchLimits const& limits);

  std::vector<std::vector<std::uint64_t>> rungs() const override {
    std::vector<std::vector<std::uint64_t>> all;
    for (Bracket const& bracket : brackets_) {
      for (auto& budgets = all.emplace_back(); Rung const& each : bracket.rungs) {
        budgets.push_back(each.budget);
      }
    }
    return all;
  }

  SearchDecision next(SearchHistory const& history) const override {
    SearchDecision open{.kind = SearchDecision::Kind::done};
    std::size_t before = 0;  // trials of earlier brackets
    for (std::size_t b = 0; b < brackets_.size(); ++b) {
      SearchDecision decision = next_of(history, b);
      decision.visible = before;
      if (decision.kind == SearchDecision::Kind::wait) open.kind = decision.kind;
      bool const waits = decision.kind == SearchDecision::Kind::wait && learns_;
      if (waits) return decision;  // the next bracket learns from this one
      if (decision.kind != SearchDecision::Kind::wait &&
          decision.kind != SearchDecision::Kind::done) {
        return decision;
      }
      before += brackets_[b].rungs.front().trials;
    }
    return open;
  }

  std::string text() const override { return text_; }

 private:
  SearchDecision next_of(SearchHistory const& history, std::size_t b) const;

  /// The number of trials, of these, that go on to a rung: as many as it has, and if all of them fail there the
  /// next ones in their place.
  std::ptrdiff_t chosen_of(SearchHistory const& history, std::vector<std::size_t> const& order,
                           std::uint64_t places) const {
    std::size_t end = std::min<std::size_t>(order.size(), places);
    auto const failed = [&](std::size_t i) {
      return history.trials[i].state == TrialState::failed;
    };
    while (end < order.size() &&
           std::all_of(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(end), failed)) {
      end = std::min<std::size_t>(order.size(), end + places);
    }
    return static_cast<std::ptrdiff_t>(end);
  }

  std::string text_;
  std::vector<Bracket> brackets_;
  std::size_t objectives_;
  bool learns_;
};

std::string schedule_text(std::string name, std::vector<Bracket> const& brackets, RungUnit unit);

}  // namespace detail

/// All trials train up to the first rung, the best one in eta of them up to eta times that, and so on up to a
/// whole run. The decisions do not depend on the number of workers, or on kills.
///
/// Cost    detail in explain(search); with eta 3 and four rungs about an eighth of training all in full.
/// Source  Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization"
///         (2016).
template <class Rate = Eta<3>>
struct SuccessiveHalving {
  /// Trials of the first rung. 0: as many as the budget pays for, which must then be given in the unit of
  /// the rungs.
  std::uint64_t trials = 0;
  /// The end of the first rung, at the earliest: rungs are counted back from a whole run. 0: three
  /// halvings before the end, or fewer for very short runs.
  std::uint64_t least = 0;
  std::uint64_t eta = Rate::value;  ///< one trial in eta goes on to the next rung
  RungUnit unit = RungUnit::steps;

  std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const {
    detail::require_eta(eta);
    std::uint64_t const first = detail::first_rung(least, limits.horizon, eta);
    auto const bracket_of = [&](std::uint64_t count) {
      return successive_halving(count, first, limits.horizon, eta);
    };
    std::uint64_t count = trials;
    if (count == 0) {
      if (!limits.budget) detail::refuse_unlimited("SuccessiveHalving", "trials", unit);
      // The first rung alone costs the budget with `high` trials.
      std::uint64_t low = 1;
      std::uint64_t high = *limits.budget / bracket_of(eta).rungs.front().budget + 1;
      while (low < high) {
        std::uint64_t const middle = low + (high - low + 1) / 2;
        if (bracket_of(middle).cost() <= *limits.budget) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      count = low;
    }
    std::vector<Bracket> brackets{bracket_of(count)};
    detail::require_budget(limits, brackets.front().cost(), unit, "SuccessiveHalving");
    std::string text = detail::schedule_text("SuccessiveHalving<Eta<" + std::to_string(eta) + ">>",
                                             brackets, unit);
    return std::make_unique<detail::BracketSchedule const>(std::move(text), std::move(brackets),
                                                           limits);
  }
};

/// Brackets of successive halving, from many short trials to a few that train in full: it does not rely on
/// what short runs say of long ones.
///
/// Source  Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization" (JMLR 2018).
template <class Rate = Eta<3>>
struct Hyperband {
  std::uint64_t least = 0;          ///< as in SuccessiveHalving
  std::uint64_t rounds = 1;         ///< of all brackets. 0: as many as the budget pays for
  std::uint64_t eta = Rate::value;  ///< one trial in eta goes on to the next rung
  RungUnit unit = RungUnit::steps;

  std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const {
    detail::require_eta(eta);
    std::uint64_t const first = detail::first_rung(least, limits.horizon, eta);
    std::vector<Bracket> const round = hyperband(first, limits.horizon, eta);
    std::uint64_t cost = 0;
    for (Bracket const& each : round) cost += each.cost();
    detail::require_budget(limits, cost * std::max<std::uint64_t>(rounds, 1), unit, "Hyperband");
    if (rounds == 0 && !limits.budget) detail::refuse_unlimited("Hyperband", "rounds", unit);
    std::uint64_t const count =
        rounds != 0 ? rounds : std::max<std::uint64_t>(*limits.budget / cost, 1);
    std::vector<Bracket> brackets;
    for (std::uint64_t i = 0; i < count; ++i) {
      brackets.insert(brackets.end(), round.begin(), round.end());
    }
    std::string text =
        detail::schedule_text("Hyperband<Eta<" + std::to_string(eta) + ">>", brackets, unit);
    return std::make_unique<detail::BracketSchedule const>(std::move(text), std::move(brackets),
                                                           limits);
  }
};

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
  std::uint64_t least = 0;          ///< as in SuccessiveHalving
  std::uint64_t eta = Rate::value;  ///< one trial in eta goes on to the next rung
  RungUnit unit = RungUnit::steps;

  std::unique_ptr<SearchSchedule const> bind(SearchLimits const& limits) const {
    detail::require_eta(eta);
    std::uint64_t const first = detail::first_rung(least, limits.horizon, eta);
    // Enough trials that every rung has one.
    std::uint64_t enough = 1;
    while (enough * first < limits.horizon) enough *= eta;
    Bracket const bracket = successive_halving(enough, first, limits.horizon, eta);
    std::vector<std::uint64_t> budgets;
    for (Rung const& each : bracket.rungs) budgets.push_back(each.budget);
    detail::require_trials(trials, "Asha");
    detail::require_no_generations(limits, "Asha");
    detail::require_budget(limits, budgets.back(), unit, "Asha");
    return std::make_unique<detail::AshaSchedule const>(trials, std::move(budgets), eta, unit,
                                                        limits);
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/schedule/successive_halving.ipp>
#endif
