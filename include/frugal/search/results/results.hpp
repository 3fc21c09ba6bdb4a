// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Results of a search and their cost. Values in the history are to be minimised; the functions here give
/// them with their own sign.
struct SearchResults {
  SearchDomain domain{};
  SearchHistory history{};
  std::vector<SearchObjective> objectives{SearchObjective{}};
  /// For each bracket the budget of each rung, in `unit`, the lowest first.
  std::vector<std::vector<std::uint64_t>> rungs{};
  std::string unit = "steps";  ///< "steps", "samples", "seconds", "cents" or "dollars"
  std::optional<double> dollars_per_hour{};
  std::optional<std::size_t> winner{};     ///< number of the trial; none if no trial is complete
  std::optional<std::size_t> winner_by{};  ///< the objective that names it, of several
  std::vector<std::size_t>
      front{};  ///< numbers of the trials on the Pareto front, of several objectives
  std::vector<std::pair<std::string, std::string>> dropped{};  ///< recipe, and the sentence why
  std::vector<std::string> warnings{};
  bool interrupted = false;  ///< a worker was preempted: start it again
  std::string stopped_by{};  ///< "", or "budget"
  /// Trial and rung of each result, in the order in which they came; those that are missing here come last,
  /// by bracket, rung and number.
  std::vector<std::pair<std::size_t, std::size_t>> order{};

  /// Errors  SettingsError for a number of a trial, a bracket or a recipe that does not exist, and for a
  ///         result that does not have one value for each objective.
  void require() const;

  std::string const& recipe(Candidate const& of) const { return domain.recipes.at(of.recipe); }
  /// A value of a setting: a name, a whole number, or the shortest digits that read back as the same number;
  /// with `digits` at most so many of them. "-" where the recipe does not have the setting.
  std::string value_text(Candidate const& of, std::size_t setting, int digits = 0) const;
  /// "lr 0.0031, width 128".
  std::string settings_text(Candidate const& of, int digits = 3) const;
  /// "AdamW + BF16, lr 0.0031, width 128".
  std::string label(Candidate const& of, int digits = 3) const;

  /// A value to be minimised with its own sign.
  double own_sign(std::size_t objective, double value) const {
    return objectives.at(objective).to_minimise(value);
  }
  /// The value of a trial at the end of a rung, with its own sign; nothing unless that is a finite number.
  std::optional<double> value(SearchTrial const& of, std::size_t rung, std::size_t objective) const;
  /// The newest one; nothing for a trial that failed.
  std::optional<double> value(SearchTrial const& of, std::size_t objective = 0) const {
    if (of.state == TrialState::failed || of.rungs.empty()) return std::nullopt;
    return value(of, of.rungs.size() - 1, objective);
  }
  bool is_on_front(std::size_t trial) const { return std::ranges::count(front, trial) != 0; }

  /// The budget of a rung; nothing for repeats, which may have other rungs.
  std::optional<std::uint64_t> budget(SearchTrial const& of, std::size_t rung) const;
  /// Seconds that a trial was paid for, up to its newest result.
  static double seconds(SearchTrial const& of) { return of.seconds(); }
  static std::uint64_t samples(SearchTrial const& of) {
    return of.rungs.empty() ? 0 : of.rungs.back().samples;
  }
  /// Of all trials, repeats included.
  double seconds() const;
  std::uint64_t samples() const;
  /// The price of time that no CostMeter has billed; nothing if no cost is known.
  std::optional<double> dollars_per_second() const {
    return frugal::dollars_per_second(history, dollars_per_hour);
  }
  /// Cost of a trial up to the end of a rung, of all its attempts that have ended, and of all trials together.
  std::optional<double> dollars(SearchTrial const& of, std::size_t rung) const {
    return dollars_until(of, rung, dollars_per_second());
  }
  std::optional<double> dollars(SearchTrial const& of) const {
    return dollars_of(of, dollars_per_second());
  }
  std::optional<double> dollars() const { return dollars_of(history, dollars_per_second()); }

  /// Trials that are no repeats, the best first: complete ones, then those that reached a higher budget; of
  /// several objectives by the fronts of pareto_ranks(), then by the first one. Failed ones are last.
  std::vector<std::size_t> ranked() const;
};

namespace detail {

inline char const* state_text(TrialState of) {
  constexpr char const* texts[]{"running", "complete", "pruned", "failed"};
  return texts[static_cast<std::size_t>(of)];
}

}  // namespace detail

// The best of many trials is partly the luckiest: its value is better than the same settings reach again. So
// finalists are repeated with other seeds, and only these repeats, which nothing has selected, say what a
// finalist is worth.

/// Mean and standard deviation of some values.
struct SeedSpread {
  std::size_t count = 0;
  double mean = 0;
  /// Of one seed from the next, with n - 1; nothing for fewer than two values.
  std::optional<double> deviation{};

  /// The standard error of the mean.
  std::optional<double> error() const {
    if (!deviation) return std::nullopt;
    return *deviation / std::sqrt(static_cast<double>(count));
  }

  /// Nothing for no values.
  static std::optional<SeedSpread> of(std::vector<double> const& values);
};

/// A trial and its repeats with other seeds. Values have their own sign.
struct OverSeeds {
  struct Objective {
    std::optional<double> own{};        ///< of the trial that the search has selected
    std::optional<SeedSpread> fresh{};  ///< of its repeats alone: unbiased
    std::optional<SeedSpread> all{};    ///< of the trial and its repeats
    /// By how much the search's own value is better than the mean of the repeats; below 0 if it is worse.
    std::optional<double> flattered_by{};
  };

  std::size_t trial = 0;
  std::vector<std::size_t> repeats{};
  std::size_t running = 0;  ///< repeats that are not over: they do not count yet
  std::size_t lost =
      0;  ///< repeats that failed, or whose value is not a number: means are without them
  std::vector<Objective> objectives{};
};

/// The values of one trial over seeds; without repeats its own value alone.
OverSeeds over_seeds(SearchResults const& of, std::size_t trial);

/// Of the trials that have repeats, the best mean over fresh seeds first, of the objective that names the winner.
std::vector<OverSeeds> finalists_over_seeds(SearchResults const& of);

namespace detail {

/// "0.125 +- 0.002"; the mean alone of one seed.
std::string seed_spread_text(SeedSpread const& of, std::string const& plus_minus = "+-");

/// How the search's own value compares with fresh seeds, as a sentence; empty without repeats.
std::string flattery_text(SearchResults const& of, OverSeeds const& known,
                          std::size_t objective = 0);

/// "2 not over, 1 without a value", of repeats; empty if all count.
std::string missing_repeats_text(OverSeeds const& known);

}  // namespace detail

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
#include <frugal/search/results/results.ipp>
#endif
