// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/spending.hpp>

#include <frugal/inline.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::optional<double> dollars_of_rung(SearchResults const& of,
                                                    SearchTrial const& trial, std::size_t rung) {
  auto const until = of.dollars(trial, rung);
  if (!until || rung == 0) return until;
  return *until - *of.dollars(trial, rung - 1);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::vector<RungCost> rung_costs(SearchResults const& of) {
  std::map<std::pair<std::size_t, std::size_t>, RungCost> costs;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats) continue;
    for (std::size_t rung = 0; rung < trial.rungs.size(); ++rung) {
      RungCost& cost = costs[{trial.bracket, rung}];
      cost.bracket = trial.bracket;
      cost.rung = rung;
      cost.budget = of.budget(trial, rung).value_or(0);
      ++cost.trials;
      if (trial.opened > rung + 1) ++cost.promoted;
      RungResult const before = rung == 0 ? RungResult{} : trial.rungs[rung - 1];
      cost.samples += std::max(trial.rungs[rung].samples, before.samples) - before.samples;
      cost.seconds += trial.rungs[rung].seconds - before.seconds;
      if (auto const dollars = detail::dollars_of_rung(of, trial, rung)) {
        cost.dollars = cost.dollars.value_or(0) + *dollars;
      }
      auto const value = of.value(trial, rung, 0);
      if (!value) continue;
      SearchObjective const& objective = of.objectives.front();
      bool const better =
          !cost.best || objective.to_minimise(*value) < objective.to_minimise(*cost.best);
      if (better) cost.best = value;
    }
  }
  std::vector<RungCost> list;
  for (auto const& [place, cost] : costs) list.push_back(cost);
  return list;
}

FRUGAL_INLINE TrialsCost repeat_cost(SearchResults const& of) {
  TrialsCost cost;
  for (SearchTrial const& trial : of.history.trials) {
    if (!trial.repeats) continue;
    ++cost.trials;
    cost.samples += SearchResults::samples(trial);
    cost.seconds += SearchResults::seconds(trial);
    if (auto const dollars = of.dollars(trial)) cost.dollars = cost.dollars.value_or(0) + *dollars;
  }
  return cost;
}

FRUGAL_INLINE TrialsCost attempt_cost(SearchResults const& of) {
  TrialsCost cost;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats || trial.spent_seconds == 0) continue;
    ++cost.trials;
    cost.seconds += trial.spent_seconds;
  }
  if (auto const price = of.dollars_per_second()) cost.dollars = cost.seconds * *price;
  return cost;
}

FRUGAL_INLINE std::optional<double> share_of_full_training(SearchResults const& of) {
  std::uint64_t most = 0;
  for (auto const& bracket : of.rungs) {
    for (std::uint64_t const budget : bracket) most = std::max(most, budget);
  }
  double spent = 0, full = 0;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats || trial.rungs.empty() || !is_finite(trial.rungs.front().values)) continue;
    RungResult const& last = trial.rungs.back();
    if (of.unit == "steps") {
      spent += static_cast<double>(last.steps);
    } else if (of.unit == "samples") {
      spent += static_cast<double>(last.samples);
    } else if (of.unit == "seconds") {
      spent += last.seconds;
    } else if (auto const dollars = of.dollars(trial);
               dollars && (of.unit == "dollars" || of.unit == "cents")) {
      spent += of.unit == "cents" ? 100 * *dollars : *dollars;
    } else {
      return std::nullopt;
    }
    full += static_cast<double>(most);
  }
  if (full == 0) return std::nullopt;
  return spent / full;
}

FRUGAL_INLINE std::vector<SpendingPoint> best_over_spending(SearchResults const& of) {
  auto order = of.order;
  std::set<std::pair<std::size_t, std::size_t>> const given(order.begin(), order.end());
  std::vector<std::tuple<bool, std::size_t, std::size_t, std::size_t>> rest;
  std::vector<SearchTrial> const& trials = of.history.trials;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (std::size_t rung = 0; rung < trials[i].rungs.size(); ++rung) {
      if (given.contains({i, rung})) continue;
      rest.emplace_back(trials[i].repeats.has_value(), trials[i].bracket, rung, i);
    }
  }
  std::sort(rest.begin(), rest.end());
  for (auto const& [repeat, bracket, rung, trial] : rest) order.emplace_back(trial, rung);
  std::vector<SpendingPoint> points;
  double seconds = 0;
  std::optional<double> dollars;
  for (auto const& [number, rung] : order) {
    SearchTrial const& trial = trials.at(number);
    seconds += trial.rungs.at(rung).seconds - (rung == 0 ? 0 : trial.rungs[rung - 1].seconds);
    if (auto const more = detail::dollars_of_rung(of, trial, rung)) {
      dollars = dollars.value_or(0) + *more;
    }
    auto const value = of.value(trial, rung, 0);
    if (!value || trial.repeats) continue;
    SearchObjective const& objective = of.objectives.front();
    bool const better =
        points.empty() || objective.to_minimise(*value) < objective.to_minimise(points.back().best);
    if (better) points.push_back({seconds, dollars, *value});
  }
  double attempts = 0;
  for (SearchTrial const& trial : trials) attempts += trial.spent_seconds;
  seconds += attempts;
  if (dollars && attempts > 0) {
    auto const price = of.dollars_per_second();  // nothing, if all that was billed took no time
    dollars = price ? std::optional(*dollars + attempts * *price) : std::nullopt;
  }
  if (!points.empty() && points.back().seconds < seconds) {
    points.push_back({seconds, dollars, points.back().best});
  }
  return points;
}

}  // namespace frugal
