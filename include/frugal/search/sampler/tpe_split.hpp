// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/pareto.hpp>

namespace frugal {

/// So many of these points of one front that together they dominate a large volume: one after the other the
/// one that adds most. The volume is that below 1.1 times the worst value of each objective (0.9 times below
/// 0). Returns their places; of equal points the first is taken before others, and the second only if there
/// are not enough. With infinite values, volumes cannot be compared, and the smallest points are taken.
///
/// Cost    volumes are computed lazily, for a point whose part can still be the largest only.
/// Source  Guerreiro, Fonseca and Paquete, "Greedy hypervolume subset selection in low dimensions" (2016).
std::vector<std::size_t> hypervolume_subset(std::vector<ObjectiveValues> const& points,
                                            std::size_t count);

/// Numbers of trials, ascending.
struct TpeSplit {
  std::vector<std::size_t> below{};  ///< the good ones
  std::vector<std::size_t> above{};
};

/// Splits trials into `count` good ones and the others: complete trials first, by value, then those that have
/// come farthest, by value. With several objectives it is front by front instead of by value, and of the last
/// front those of hypervolume_subset().
///
/// Source  Bergstra et al. (2011), Ozaki et al., "Multiobjective tree-structured Parzen estimator" (2022), as
///         Optuna 5 has them; it knows no pruning with several objectives, and there it is ours.
TpeSplit split_trials(SearchHistory const& seen, std::vector<std::size_t> numbers,
                      std::size_t count);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/tpe_split.ipp>
#endif
