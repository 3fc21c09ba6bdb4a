// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/forecast.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/history.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE SimulatedSearch simulate_search(SearchSchedule const& schedule,
                                              std::optional<std::uint64_t> budget,
                                              std::size_t objectives,
                                              std::function<double(std::size_t)> const& value) {
  std::vector<std::vector<std::uint64_t>> const rungs = schedule.rungs();
  SimulatedSearch found;
  std::vector<std::vector<double>>& counts = found.counts;
  for (auto const& each : rungs) counts.emplace_back(each.size());
  SearchHistory history;
  auto const train = [&](std::size_t number) {
    SearchTrial& trial = history.trials[number];
    counts[trial.bracket][trial.rungs.size()] += 1;
    trial.rungs.push_back({.values = ObjectiveValues(objectives, value(number))});
    if (trial.rungs.size() == rungs[trial.bracket].size()) trial.state = TrialState::complete;
  };
  auto const pays = [&](SearchDecision const& decision) {
    if (!pays_for(budget, rungs, history, decision)) return false;
    found.learnt += decision.visible != 0 ? 1U : 0U;
    return true;
  };
  play_schedule(schedule, history, pays, train);
  return found;
}

FRUGAL_INLINE double cost_of(std::vector<std::vector<std::uint64_t>> const& rungs,
                             std::vector<std::vector<double>> const& counts) {
  double cost = 0;
  for (std::size_t b = 0; b < rungs.size(); ++b) {
    std::uint64_t before = 0;
    for (std::size_t k = 0; k < rungs[b].size(); ++k) {
      cost += counts[b][k] * static_cast<double>(rungs[b][k] - before);
      before = rungs[b][k];
    }
  }
  return cost;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE SearchForecast forecast(SearchSchedule const& schedule,
                                      std::optional<std::uint64_t> budget, std::size_t objectives,
                                      Finalists const& finalists, std::size_t draws) {
  auto const rungs = schedule.rungs();
  detail::SimulatedSearch const worst_case = detail::simulate_search(
      schedule, budget, objectives, [](std::size_t i) { return -static_cast<double>(i); });
  auto const& worst = worst_case.counts;
  auto expected = worst;
  // Brackets have as many trials whatever comes.
  if (!schedule.is_deterministic()) {
    for (auto& each : expected) std::ranges::fill(each, 0.0);
    for (std::size_t d = 0; d < draws; ++d) {
      auto const one = detail::simulate_search(schedule, budget, objectives, [d](std::size_t i) {
        return Draw({.index = i, .seed = d}, draw_stream("forecast")).uniform();
      });
      for (std::size_t b = 0; b < expected.size(); ++b) {
        for (std::size_t k = 0; k < expected[b].size(); ++k) {
          expected[b][k] += one.counts[b][k] / static_cast<double>(draws);
        }
      }
    }
  }
  SearchForecast found{.learnt = worst_case.learnt};
  double trials = 0, complete = 0;
  for (std::size_t b = 0; b < rungs.size(); ++b) {
    for (std::size_t k = 0; k < rungs[b].size(); ++k) {
      found.rows.push_back({.bracket = b,
                            .rung = k,
                            .budget = rungs[b][k],
                            .worst = worst[b][k],
                            .expected = expected[b][k]});
    }
    trials += worst[b].front();
    complete += worst[b].back();
  }
  auto const horizon = static_cast<double>(rungs.front().back());
  found.complete = static_cast<std::size_t>(complete);
  if (finalists.seeds > 1) {
    found.finalists = std::min(finalists.count, found.complete);
    found.repeats = static_cast<double>(found.finalists * (finalists.seeds - 1)) * horizon;
  }
  found.worst = detail::cost_of(rungs, worst) + found.repeats;
  found.expected = detail::cost_of(rungs, expected) + found.repeats;
  found.whole = trials * horizon;
  return found;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::string forecast_text(SearchForecast const& all, SearchSchedule const& schedule,
                                        RungUnit unit, std::string const& sampler, bool learns,
                                        bool measured, Finalists const& finalists) {
  std::string text = schedule.text() + ", candidates by " + sampler + "\n";
  if (learns) {
    double trials = 0;
    for (SearchForecast::Row const& each : all.rows) trials += each.rung == 0 ? each.worst : 0;
    text += all.learnt == 0 ? "The sampler sees no results: this schedule draws all trials before "
                              "the first one ends. "
                              "Hyperband, Asha, MedianStop and RandomSearch show it some.\n"
                            : "The sampler sees results for " + std::to_string(all.learnt) +
                                  " of " + fixed_short(trials, 0) + " trials.\n";
  }
  if (!frugal::is_deterministic(unit)) {
    text += "The decisions depend on the machines' speed: the rungs are in " +
            std::string(name_of(unit)) + ".\n";
  } else if (measured) {
    text +=
        "The decisions depend on the machines' speed: an objective or the budget is in time or "
        "money.\n";
  } else if (!schedule.is_deterministic()) {
    text += "The decisions depend on the order in which results arrive, which the journal has.\n";
  } else {
    text += "The decisions are the same for any number of workers, and after kills.\n";
  }
  std::vector<std::vector<std::string>> rows{
      {"bracket", "rung", std::string("until ") + name_of(unit), "trials at most", "expected"}};
  for (SearchForecast::Row const& each : all.rows) {
    rows.push_back({std::to_string(each.bracket), std::to_string(each.rung),
                    std::to_string(each.budget), fixed_short(each.worst, 0),
                    fixed_short(each.expected, 1)});
  }
  text += watch::columns(rows, {12, 8, 20, 16, 12});
  if (all.finalists != 0) {
    text += "then " + std::to_string(all.finalists) +
            (all.finalists == 1 ? " finalist" : " finalists") + " with " +
            std::to_string(finalists.seeds - 1) + " more seeds each\n";
  }
  auto const share = [&](double cost) {
    return fixed_short(cost, 0) + " " + name_of(unit) + ", " +
           fixed_short(100 * cost / all.whole, 1) + "%";
  };
  text += "cost in the worst case, if no trial fails: " + share(all.worst) +
          " of training all its trials in full\n";
  text += "expected cost: " + share(all.expected) + "\n";
  return text;
}

}  // namespace frugal::detail
