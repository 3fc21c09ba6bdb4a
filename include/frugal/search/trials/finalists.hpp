// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

namespace frugal {

/// The best trials are trained again with other seeds: the best of many is flattered by its seed.
struct Finalists {
  std::size_t count = 3;  ///< trials that are repeated; 0: none
  std::size_t seeds = 3;  ///< of each, the trial's own included

  /// Whole runs that they take at most, those of the trials themselves not included.
  std::uint64_t runs() const { return seeds < 2 ? 0 : count * (seeds - 1); }
};

/// The numbers of the complete trials, the best first, without repeats. `by`: the objective that decides, of several;
/// those that are equal in it, and without one all, are ordered as best_first() does.
FRUGAL_INLINE std::vector<std::size_t> complete_trials(SearchHistory const& history,
                                                       std::optional<std::size_t> by = {}) {
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

/// The trials that repeat trial `number`, in the order of their seeds.
FRUGAL_INLINE std::vector<std::size_t> repeats_of(SearchHistory const& history,
                                                  std::size_t number) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    if (history.trials[i].repeats == number) all.push_back(i);
  }
  return all;
}

/// Repeats that the history lacks, of the best complete trials. `by`: see complete_trials().
FRUGAL_INLINE std::vector<SearchTrial> missing_repeats(SearchHistory const& history,
                                                       Finalists const& finalists,
                                                       std::uint64_t seed,
                                                       std::optional<std::size_t> by = {}) {
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

/// The repeats of a trial that are over, in the order of their seeds.
FRUGAL_INLINE std::vector<std::size_t> ended_repeats_of(SearchHistory const& history,
                                                        std::size_t number) {
  std::vector<std::size_t> all = repeats_of(history, number);
  std::erase_if(all, [&](std::size_t each) { return !history.trials[each].is_over(); });
  return all;
}

/// The mean over seeds of a trial and the first `count` of its repeats that are over; infinite if any of its
/// repeats failed.
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

/// The complete trials that no other one is better than in every objective.
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

/// The number of the best trial: of those that are repeated by the mean over seeds, as many for each as all have,
/// and by its own value if there are none yet. Nothing if no trial is complete, and for several objectives unless `by`
/// says which one decides: the end of a front is no winner.
FRUGAL_INLINE std::optional<std::size_t> winner_of(SearchHistory const& history,
                                                   std::optional<std::size_t> by = {}) {
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
