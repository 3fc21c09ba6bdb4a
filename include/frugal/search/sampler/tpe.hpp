// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/sampler/parzen.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/distribution.hpp>
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

/// Tree-structured Parzen estimators: the best tenth of the trials (25 at most) give one density, and the
/// others another one. Of some samples of the first, the candidate is the one whose ratio of the two
/// densities is the largest.
///
/// One joint density covers the recipe and the settings that all recipes have. Each setting that only some
/// recipes have is drawn alone, from the trials that have it. With several objectives each parameter is drawn
/// alone, the best tenth is without limit, and its trials weigh alike. Trials that were pruned, or that wait
/// at a rung, count after complete ones: see split_trials().
///
/// Failed trials are never good ones, but belong to the others, so that their neighbourhood is avoided;
/// Optuna ignores them. If `constant_liar` is true, trials without results that are not over belong to the
/// others, too: workers that ask at the same time then choose different candidates. Neither count for
/// `startup` or for the tenth.
///
/// Cost    samples times trials times settings for each candidate: about 1 ms for 100 trials of 5 settings.
/// Errors  require(): SettingsError for no sample to choose from.
/// Source  Bergstra et al., "Algorithms for hyper-parameter optimization" (NeurIPS 2011); Falkner, Klein and
///         Hutter, "BOHB" (ICML 2018) for the joint density; Ozaki et al., "Multiobjective tree-structured
///         Parzen estimator" (JAIR 73, 2022). Kernels, weights and split are those of Optuna 5, its defaults.
struct Tpe {
  static constexpr std::string_view name = "tpe";
  static constexpr bool learns = true;

  std::size_t startup = 10;     ///< trials with results before which candidates are random
  std::size_t candidates = 24;  ///< samples to choose from
  bool constant_liar = true;

  Candidate suggest(SearchDomain const& domain, SearchHistory const& seen, std::size_t trial,
                    std::uint64_t seed) const;

  void require() const;
  /// For the journal: searches whose samplers differ are not the same.
  std::string text() const;
  std::size_t generation() const { return 0; }

  friend bool operator==(Tpe const&, Tpe const&) = default;

 private:
  static Distribution values_of(SearchDomain const& domain, std::size_t parameter) {
    if (parameter == 0) return domain.recipe_choice();
    return domain.settings[parameter - 1].values;
  }
  static std::optional<double> value_of(Candidate const& candidate, std::size_t parameter) {
    if (parameter == 0) return static_cast<double>(candidate.recipe);
    return candidate.values[parameter - 1];
  }
  static bool applies_to_all(SearchDomain const& domain, SearchedSetting const& setting) {
    return setting.recipes.empty() || setting.recipes.size() == domain.recipes.size();
  }

  /// Adds failed and running trials to those above.
  void avoid_others(SearchDomain const& domain, SearchHistory const& seen, std::size_t trial,
                    std::vector<std::size_t>& above) const;

  /// The density of these parameters, from the trials that have all of them.
  static Parzen density(SearchDomain const& domain, SearchHistory const& seen,
                        std::vector<std::size_t> const& trials,
                        std::vector<std::size_t> const& parameters, bool alike);

  /// Sets values of these parameters together.
  void choose(SearchDomain const& domain, SearchHistory const& seen, TpeSplit const& split,
              std::vector<std::size_t> const& parameters, bool several, Draw& draw,
              std::vector<std::optional<double>>& values) const;
};

static_assert(SearchSampler<Tpe>);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/tpe.ipp>
#endif
