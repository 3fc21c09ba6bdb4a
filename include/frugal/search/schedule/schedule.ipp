// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/schedule/schedule.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
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

namespace frugal::detail {

FRUGAL_INLINE void refuse_schedule(std::string what, std::string why, std::string fix,
                                   char const* where) {
  throw SettingsError(
      {.what = std::move(what), .where = where, .why = std::move(why), .fix = std::move(fix)});
}

FRUGAL_INLINE void require_budget(SearchLimits const& limits, std::uint64_t least, RungUnit unit,
                                  char const* where) {
  if (!limits.budget || *limits.budget >= least) return;
  std::string const repeats = ", of which the finalists' repeats take ";
  refuse_schedule(
      "the budget is " + std::to_string(*limits.budget + limits.reserved) + " " + name_of(unit) +
          (limits.reserved == 0 ? "" : repeats + std::to_string(limits.reserved)),
      "the smallest search of this schedule takes " + std::to_string(least) + " " + name_of(unit),
      "Give a larger budget, or fewer or shorter rungs and fewer finalists.", where);
}

FRUGAL_INLINE void require_no_generations(SearchLimits const& limits, char const* where) {
  if (limits.generation == 0) return;
  refuse_schedule("the sampler draws in generations of " + std::to_string(limits.generation),
                  "the trials of a generation are compared when all have trained alike, and "
                  "here most stop at a lower rung",
                  "Use RandomSearch with this sampler, or Tpe, SobolSampler or RandomSampler with "
                  "this schedule.",
                  where);
}

FRUGAL_INLINE void refuse_unlimited(std::string const& schedule, char const* setting,
                                    RungUnit unit) {
  bool const planned = is_deterministic(unit);
  refuse_schedule(
      "the search has neither " + std::string(setting) + " nor a budget in " + name_of(unit),
      "the number of " + std::string(setting) + " follows from one of them",
      "Set " + schedule + "::" + setting +
          (planned ? std::string(", or SearchBudget::") + name_of(unit) + "." : "."),
      schedule.c_str());
}

FRUGAL_INLINE void require_eta(std::uint64_t eta) {
  if (eta >= 2) return;
  refuse_schedule("eta is " + std::to_string(eta), "one trial in eta goes on to the next rung",
                  "Give 2 or more; 3 and 4 are usual.", "the schedule of a search");
}

FRUGAL_INLINE void require_trials(std::uint64_t count, char const* where) {
  if (count != 0) return;
  refuse_schedule(std::string(where) + " is 0", "nothing would be trained", "Give 1 or more.",
                  where);
}

FRUGAL_INLINE std::uint64_t first_rung(std::uint64_t least, std::uint64_t horizon,
                                       std::uint64_t eta) {
  return least != 0 ? least : std::max<std::uint64_t>(horizon / (eta * eta * eta), 1);
}

FRUGAL_INLINE OwnTrials OwnTrials::of(SearchHistory const& history) {
  OwnTrials own;
  for (SearchTrial const& trial : history.trials) {
    if (trial.repeats) continue;
    ++own.count;
    own.open = own.open || trial.is_open();
  }
  return own;
}

FRUGAL_INLINE std::string budgets_text(std::vector<std::uint64_t> const& budgets, RungUnit unit) {
  std::string text = " at";
  for (std::uint64_t const each : budgets) text += " " + std::to_string(each);
  return text + " " + name_of(unit);
}

FRUGAL_INLINE ObjectiveValues values_at(SearchTrial const& trial, std::size_t rung,
                                        std::size_t objectives) {
  if (trial.rungs.size() > rung) return trial.rungs[rung].values;
  if (trial.state == TrialState::failed || trial.rungs.empty()) {
    return ObjectiveValues(objectives, std::numeric_limits<double>::infinity());
  }
  return trial.rungs.back().values;
}

FRUGAL_INLINE bool has_ended_rung(SearchTrial const& trial, std::size_t rung) {
  return trial.is_over() || trial.rungs.size() > rung;
}

FRUGAL_INLINE bool pays_for(std::optional<std::uint64_t> budget,
                            std::vector<std::vector<std::uint64_t>> const& rungs,
                            SearchHistory const& history, SearchDecision const& decision) {
  if (!budget) return true;
  std::uint64_t all = 0;
  for (SearchTrial const& each : history.trials) {
    if (!each.repeats) all += rungs.at(each.bracket).at(each.opened - 1);
  }
  if (decision.kind == SearchDecision::Kind::create) {
    return all + rungs.at(decision.bracket).front() <= *budget;
  }
  SearchTrial const& trial = history.trials[decision.trial];
  std::vector<std::uint64_t> const& own = rungs.at(trial.bracket);
  return all + own.at(trial.opened) - own.at(trial.opened - 1) <= *budget;
}

}  // namespace frugal::detail
