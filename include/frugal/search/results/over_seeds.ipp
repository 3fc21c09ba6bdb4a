// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/over_seeds.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>

#include <limits>
#include <utility>

namespace frugal {

FRUGAL_INLINE std::optional<SeedSpread> SeedSpread::of(std::vector<double> const& values) {
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

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::string seed_spread_text(SeedSpread const& of, std::string const& plus_minus) {
  std::string const mean = general(of.mean, 4);
  return of.deviation ? mean + ' ' + plus_minus + ' ' + general(*of.deviation, 2) : mean;
}

FRUGAL_INLINE std::string flattery_text(SearchResults const& of, OverSeeds const& known,
                                        std::size_t objective) {
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

FRUGAL_INLINE std::string missing_repeats_text(OverSeeds const& known) {
  std::string text;
  if (known.running > 0) text = std::to_string(known.running) + " not over";
  if (known.lost > 0)
    text += (text.empty() ? "" : ", ") + std::to_string(known.lost) + " without a value";
  return text;
}

}  // namespace frugal::detail
