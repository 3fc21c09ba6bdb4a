// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <frugal/search/trials/history.hpp>

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
std::vector<std::size_t> complete_trials(SearchHistory const& history,
                                         std::optional<std::size_t> by = {});

/// The trials that repeat trial `number`, in the order of their seeds.
std::vector<std::size_t> repeats_of(SearchHistory const& history, std::size_t number);

/// Repeats that the history lacks, of the best complete trials. `by`: see complete_trials().
std::vector<SearchTrial> missing_repeats(SearchHistory const& history, Finalists const& finalists,
                                         std::uint64_t seed, std::optional<std::size_t> by = {});

/// The repeats of a trial that are over, in the order of their seeds.
std::vector<std::size_t> ended_repeats_of(SearchHistory const& history, std::size_t number);

/// The mean over seeds of a trial and the first `count` of its repeats that are over; infinite if any of its
/// repeats failed.
ObjectiveValues mean_over_seeds(SearchHistory const& history, std::size_t number,
                                std::size_t count);

/// The complete trials that no other one is better than in every objective.
std::vector<std::size_t> front_of(SearchHistory const& history);

/// The number of the best trial: of those that are repeated by the mean over seeds, as many for each as all have,
/// and by its own value if there are none yet. Nothing if no trial is complete, and for several objectives unless `by`
/// says which one decides: the end of a front is no winner.
std::optional<std::size_t> winner_of(SearchHistory const& history,
                                     std::optional<std::size_t> by = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/trials/finalists.ipp>
#endif
