// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/trials/finalists.hpp>

#include <frugal/inline.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE std::vector<std::size_t> complete_trials(SearchHistory const& history,
                                                       std::optional<std::size_t> by) {
  std::vector<std::size_t> numbers;
  std::vector<ObjectiveValues> results;
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    SearchTrial const& trial = history.trials[i];
    if (trial.repeats || trial.state != TrialState::complete) continue;
    numbers.push_back(i);
    results.push_back(trial.rungs.back().values);
  }
  std::vector<std::size_t> ordered;
  for (std::size_t const place : best_first(results)) ordered.push_back(numbers[place]);
  if (by) {
    std::ranges::stable_sort(ordered, {}, [&](std::size_t number) {
      return detail::value_to_minimise(history.trials[number].rungs.back().values.at(*by));
    });
  }
  return ordered;
}

FRUGAL_INLINE std::vector<std::size_t> repeats_of(SearchHistory const& history,
                                                  std::size_t number) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    if (history.trials[i].repeats == number) all.push_back(i);
  }
  return all;
}

FRUGAL_INLINE std::vector<SearchTrial> missing_repeats(SearchHistory const& history,
                                                       Finalists const& finalists,
                                                       std::uint64_t seed,
                                                       std::optional<std::size_t> by) {
  std::vector<SearchTrial> missing;
  std::vector<std::size_t> best = complete_trials(history, by);
  best.resize(std::min(best.size(), finalists.count));
  for (std::size_t const number : best) {
    std::size_t const made = repeats_of(history, number).size();
    SearchTrial const& trial = history.trials[number];
    for (std::size_t r = made + 1; r < finalists.seeds; ++r) {
      missing.push_back({.candidate = trial.candidate,
                         .bracket = trial.bracket,
                         .seed = seed + r,
                         .repeats = number});
    }
  }
  return missing;
}

FRUGAL_INLINE std::vector<std::size_t> ended_repeats_of(SearchHistory const& history,
                                                        std::size_t number) {
  std::vector<std::size_t> all = repeats_of(history, number);
  std::erase_if(all, [&](std::size_t each) { return !history.trials[each].is_over(); });
  return all;
}

FRUGAL_INLINE ObjectiveValues mean_over_seeds(SearchHistory const& history, std::size_t number,
                                              std::size_t count) {
  std::size_t const objectives = history.trials[number].rungs.back().values.size();
  ObjectiveValues mean = history.trials[number].values(objectives);
  std::vector<std::size_t> ended = ended_repeats_of(history, number);
  for (std::size_t const each : ended) {
    SearchTrial const& repeat = history.trials[each];
    if (repeat.state == TrialState::failed) return repeat.values(objectives);
  }
  ended.resize(std::min(ended.size(), count));
  for (std::size_t const each : ended) {
    ObjectiveValues const values = history.trials[each].values(objectives);
    for (std::size_t m = 0; m < objectives; ++m) mean[m] += values[m];
  }
  for (double& each : mean) each /= static_cast<double>(ended.size() + 1);
  return mean;
}

FRUGAL_INLINE std::vector<std::size_t> front_of(SearchHistory const& history) {
  std::vector<std::size_t> const numbers = complete_trials(history);
  std::vector<ObjectiveValues> results;
  for (std::size_t const each : numbers)
    results.push_back(history.trials[each].rungs.back().values);
  std::vector<std::size_t> const ranks = pareto_ranks(results);
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (ranks[i] == 0) front.push_back(numbers[i]);
  }
  std::ranges::sort(front);
  return front;
}

FRUGAL_INLINE std::optional<std::size_t> winner_of(SearchHistory const& history,
                                                   std::optional<std::size_t> by) {
  std::vector<std::size_t> const best = complete_trials(history, by);
  if (best.empty()) return std::nullopt;
  if (!by && history.trials[best.front()].rungs.back().values.size() > 1) return std::nullopt;
  std::vector<std::size_t> repeated;
  for (std::size_t const each : best) {
    if (!repeats_of(history, each).empty()) repeated.push_back(each);
  }
  if (repeated.empty()) return best.front();
  std::size_t seeds = history.trials.size();
  for (std::size_t const each : repeated) {
    seeds = std::min(seeds, ended_repeats_of(history, each).size());
  }
  std::vector<ObjectiveValues> means;
  for (std::size_t const each : repeated) {
    ObjectiveValues mean = mean_over_seeds(history, each, seeds);
    means.push_back(by ? ObjectiveValues{mean.at(*by)} : std::move(mean));
  }
  return repeated[best_first(means).front()];
}

}  // namespace frugal
