// SPDX-License-Identifier: Apache-2.0
// The best of many trials is partly the luckiest: its value is better than the same settings reach again. So
// finalists are repeated with other seeds, and only these repeats, which nothing has selected, say what a
// finalist is worth.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

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
  FRUGAL_INLINE static std::optional<SeedSpread> of(std::vector<double> const& values) {
    if (values.empty()) return std::nullopt;
    SeedSpread spread{.count = values.size()};
    auto const n = static_cast<double>(values.size());
    for (double const each : values) spread.mean += each / n;
    if (values.size() == 1) return spread;
    double squares = 0;
    for (double const each : values) squares += (each - spread.mean) * (each - spread.mean);
    spread.deviation = std::sqrt(squares / (n - 1));
    return spread;
  }
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
FRUGAL_INLINE OverSeeds over_seeds(SearchResults const& of, std::size_t trial) {
  OverSeeds known{.trial = trial, .repeats = repeats_of(of.history, trial)};
  known.objectives.resize(of.objectives.size());
  std::vector<std::vector<double>> fresh(of.objectives.size());
  for (std::size_t const number : known.repeats) {
    SearchTrial const& repeat = of.history.trials[number];
    if (!repeat.is_over()) ++known.running;
    // A repeat that is pruned or running has trained less.
    bool const complete = repeat.state == TrialState::complete;
    bool whole = complete;
    for (std::size_t m = 0; m < fresh.size(); ++m) {
      auto const value = of.value(repeat, m);
      whole = whole && value;
      if (value && complete) fresh[m].push_back(*value);
    }
    if (repeat.is_over() && !whole) ++known.lost;
  }
  for (std::size_t m = 0; m < fresh.size(); ++m) {
    OverSeeds::Objective& each = known.objectives[m];
    each.own = of.value(of.history.trials.at(trial), m);
    each.fresh = SeedSpread::of(fresh[m]);
    if (each.own && each.fresh) {
      double const more = each.fresh->mean - *each.own;
      each.flattered_by = of.objectives[m].maximise ? -more : more;
    }
    if (each.own) fresh[m].push_back(*each.own);
    each.all = SeedSpread::of(fresh[m]);
  }
  return known;
}

/// Of the trials that have repeats, the best mean over fresh seeds first, of the objective that names the winner.
FRUGAL_INLINE std::vector<OverSeeds> finalists_over_seeds(SearchResults const& of) {
  std::vector<OverSeeds> finalists;
  for (std::size_t const trial : of.ranked()) {
    OverSeeds known = over_seeds(of, trial);
    if (!known.repeats.empty()) finalists.push_back(std::move(known));
  }
  std::size_t const by = of.winner_by.value_or(0);
  auto const key = [&](OverSeeds const& each) {
    auto const& fresh = each.objectives.at(by).fresh;
    if (!fresh) return std::numeric_limits<double>::infinity();
    return of.objectives.at(by).to_minimise(fresh->mean);
  };
  std::ranges::sort(finalists, {},
                    [&](OverSeeds const& each) { return std::pair(key(each), each.trial); });
  return finalists;
}

namespace detail {

/// "0.125 +- 0.002"; the mean alone of one seed.
FRUGAL_INLINE std::string seed_spread_text(SeedSpread const& of,
                                           std::string const& plus_minus = "+-") {
  std::string const mean = general(of.mean, 4);
  return of.deviation ? mean + ' ' + plus_minus + ' ' + general(*of.deviation, 2) : mean;
}

/// How the search's own value compares with fresh seeds, as a sentence; empty without repeats.
FRUGAL_INLINE std::string flattery_text(SearchResults const& of, OverSeeds const& known,
                                        std::size_t objective = 0) {
  OverSeeds::Objective const& each = known.objectives.at(objective);
  if (!each.flattered_by) return "";
  std::string text = "Its " + of.objectives[objective].name + " in the search is " +
                     general(std::abs(*each.flattered_by), 2) +
                     (*each.flattered_by >= 0 ? " better" : " worse") + " than the mean of " +
                     count_text(each.fresh->count, "other seed");
  if (auto const error = each.fresh->error()) {
    text += " (standard error " + general(*error, 2) + ")";
  }
  if (*each.flattered_by > 0) text += ": expect the mean";
  return text + '.';
}

/// "2 not over, 1 without a value", of repeats; empty if all count.
FRUGAL_INLINE std::string missing_repeats_text(OverSeeds const& known) {
  std::string text;
  if (known.running > 0) text = std::to_string(known.running) + " not over";
  if (known.lost > 0)
    text += (text.empty() ? "" : ", ") + std::to_string(known.lost) + " without a value";
  return text;
}

}  // namespace detail

}  // namespace frugal
