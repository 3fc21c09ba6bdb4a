// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/finalists.hpp>
#include <frugal/search/trials/history.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// Results of searches that nothing was trained for.
namespace frugal_test::synthetic {

using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::TrialState;

/// Three recipes and four settings, of which one is of the second recipe alone.
inline frugal::SearchDomain domain() {
  return {.recipes = {"AdamW + BF16", "SGD", "Lion + BF16"},
          .settings = {{.name = "lr", .values = frugal::LogUniform{1e-4, 1e-1}},
                       {.name = "width", .values = frugal::Int{16, 256, 16, false}},
                       {.name = "momentum", .values = frugal::Uniform{0.5, 0.99}, .recipes = {1}},
                       {.name = "norm", .values = frugal::Choice{{"none", "layer", "rms"}}}}};
}

/// A search by successive halving over `domain()`: by accuracy, and with `objectives` 2 by latency, too. A
/// tenth of the trials fails. Finalists are repeated with three other seeds.
inline SearchResults search(std::size_t trials, std::size_t objectives = 1, bool all_fail = false) {
  SearchResults results{.domain = domain(), .dollars_per_hour = 2.5};
  results.objectives = {{.name = "accuracy", .maximise = true}};
  if (objectives > 1) results.objectives.push_back({.name = "latency"});
  frugal::Bracket const bracket = frugal::successive_halving(trials, 250, 4000, 4);
  for (auto const& each : bracket.rungs)
    results.rungs.resize(1), results.rungs[0].push_back(each.budget);
  std::vector<double> quality;
  auto const values_at = [&](std::size_t number, std::uint64_t steps, frugal::Draw& draw) {
    double const noise = 0.01 * draw.normal();
    double const reached = 1 - 0.55 * std::exp(-static_cast<double>(steps) / 1500);
    frugal::ObjectiveValues values{-(quality[number] * reached + noise)};
    auto const& candidate = results.history.trials[number].candidate;
    if (objectives > 1) values.push_back(0.02 * *candidate.values[1] * (1 + 0.1 * draw.uniform()));
    return values;
  };
  auto const train = [&](std::size_t number, std::size_t like, std::size_t rung,
                         frugal::Draw& draw) {
    SearchTrial& trial = results.history.trials[number];
    std::uint64_t const steps = results.rungs[0][rung];
    trial.rungs.push_back(
        {.steps = steps,
         .samples = steps * 64,
         .seconds = 5 + static_cast<double>(steps) * (0.02 + 1e-4 * *trial.candidate.values[1]),
         .values = values_at(like, steps, draw)});
    results.order.emplace_back(number, rung);
  };
  std::vector<std::size_t> alive;
  for (std::size_t i = 0; i < trials; ++i) {
    frugal::Draw draw({.index = i, .seed = 7, .epoch = 0});
    SearchTrial trial{.candidate = {.recipe = static_cast<std::size_t>(draw.below(3))}, .seed = i};
    for (auto const& setting : results.domain.settings) {
      double const value = value_at(setting.values, draw.uniform());
      trial.candidate.values.push_back(
          setting.applies_to(trial.candidate.recipe) ? std::optional(value) : std::nullopt);
    }
    double const off = std::log10(*trial.candidate.values[0]) + 2.5;
    quality.push_back(0.95 - 0.12 * off * off - 0.04 * static_cast<double>(trial.candidate.recipe));
    results.history.trials.push_back(trial);
    if (all_fail || draw.chance(0.1)) {
      results.history.trials[i].state = TrialState::failed;
      results.history.trials[i].outcome =
          draw.chance(0.5) ? "out of memory" : "the loss is not a number";
      results.history.trials[i].failures = 1;
      continue;
    }
    train(i, i, 0, draw);
    alive.push_back(i);
  }
  for (std::size_t rung = 1; rung < bracket.rungs.size() && !alive.empty(); ++rung) {
    std::stable_sort(alive.begin(), alive.end(), [&](std::size_t one, std::size_t other) {
      return results.history.trials[one].values()[0] < results.history.trials[other].values()[0];
    });
    std::size_t const stay =
        std::min(alive.size(), static_cast<std::size_t>(bracket.rungs[rung].trials));
    for (std::size_t i = stay; i < alive.size(); ++i) {
      results.history.trials[alive[i]].state = TrialState::pruned;
    }
    alive.resize(stay);
    for (std::size_t const number : alive) {
      frugal::Draw draw({.index = number, .seed = 8, .epoch = rung});
      results.history.trials[number].opened = rung + 1;
      train(number, number, rung, draw);
    }
  }
  for (std::size_t const number : alive)
    results.history.trials[number].state = TrialState::complete;
  if (alive.empty()) return results;
  for (std::size_t const number : alive) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      std::size_t const repeat = results.history.trials.size();
      SearchTrial trial{.candidate = results.history.trials[number].candidate,
                        .seed = 100 + seed,
                        .repeats = number,
                        .opened = bracket.rungs.size()};
      results.history.trials.push_back(trial);
      frugal::Draw draw({.index = number, .seed = 9, .epoch = seed});
      for (std::size_t rung = 0; rung < bracket.rungs.size(); ++rung)
        train(repeat, number, rung, draw);
      results.history.trials[repeat].state = TrialState::complete;
    }
  }
  results.winner = frugal::winner_of(results.history, 0);
  results.winner_by = 0;
  if (objectives > 1) {
    std::vector<frugal::ObjectiveValues> points;
    for (std::size_t const number : alive)
      points.push_back(results.history.trials[number].values(2));
    auto const ranks = frugal::pareto_ranks(points);
    for (std::size_t i = 0; i < alive.size(); ++i) {
      if (ranks[i] == 0) results.front.push_back(alive[i]);
    }
  }
  return results;
}

}  // namespace frugal_test::synthetic
