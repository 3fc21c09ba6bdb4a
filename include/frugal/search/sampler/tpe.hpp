// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/data/sampling/draw.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/sampler/parzen.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/sampler/tpe_split.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/distribution.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

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

  FRUGAL_INLINE Candidate suggest(SearchDomain const& domain, SearchHistory const& seen,
                                  std::size_t trial, std::uint64_t seed) const {
    Draw draw({.index = trial, .seed = seed}, draw_stream("search.tpe"));
    std::vector<std::size_t> const lessons =
        detail::lessons(domain, seen, seen.trials.size(), trial);
    if (lessons.size() < startup) return uniform_candidate(domain, draw);
    bool const several = detail::objectives_of(seen) > 1;
    auto good = static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(lessons.size())));
    if (!several) good = std::min<std::size_t>(good, 25);
    TpeSplit split = split_trials(seen, lessons, good);
    avoid_others(domain, seen, trial, split.above);

    // Parameter 0 is the recipe, and parameter i + 1 is setting i.
    std::vector<std::size_t> joint;
    if (!several) {
      for (std::size_t i = 0; i <= domain.settings.size(); ++i) {
        bool const shared = i == 0 || applies_to_all(domain, domain.settings[i - 1]);
        if (shared && !has_one_value(values_of(domain, i))) joint.push_back(i);
      }
    }
    std::vector<std::optional<double>> values(domain.settings.size() + 1);
    choose(domain, seen, split, joint, several, draw, values);
    if (!values[0]) choose(domain, seen, split, {0}, several, draw, values);
    Candidate candidate{.recipe = static_cast<std::size_t>(*values[0])};
    for (std::size_t i = 0; i < domain.settings.size(); ++i) {
      bool const applies = domain.settings[i].applies_to(candidate.recipe);
      if (applies && !values[i + 1]) {
        choose(domain, seen, split, {i + 1}, several, draw, values);
      }
      candidate.values.push_back(applies ? values[i + 1] : std::nullopt);
    }
    return candidate;
  }

  FRUGAL_INLINE void require() const {
    detail::require_least(name, "candidates", candidates, 1,
                          "a suggestion is the best one of them");
  }
  /// For the journal: searches whose samplers differ are not the same.
  FRUGAL_INLINE std::string text() const {
    return std::string(name) + ", startup " + std::to_string(startup) + ", candidates " +
           std::to_string(candidates) + (constant_liar ? ", constant liar" : "");
  }
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
  FRUGAL_INLINE void avoid_others(SearchDomain const& domain, SearchHistory const& seen,
                                  std::size_t trial, std::vector<std::size_t>& above) const {
    for (std::size_t i = 0; i < seen.trials.size(); ++i) {
      SearchTrial const& each = seen.trials[i];
      if (i == trial || each.repeats || has_lesson(each)) continue;
      bool const avoided = each.state == TrialState::failed || constant_liar;
      if (avoided && is_candidate_of(domain, each.candidate)) above.push_back(i);
    }
    std::ranges::sort(above);  // newer trials weigh more
  }

  /// The density of these parameters, from the trials that have all of them.
  FRUGAL_INLINE static Parzen density(SearchDomain const& domain, SearchHistory const& seen,
                                      std::vector<std::size_t> const& trials,
                                      std::vector<std::size_t> const& parameters, bool alike) {
    std::vector<Distribution> kinds;
    for (std::size_t const each : parameters) kinds.push_back(values_of(domain, each));
    std::vector<std::vector<double>> observed;
    for (std::size_t const number : trials) {
      std::vector<double> point;
      for (std::size_t const each : parameters) {
        if (auto const value = value_of(seen.trials[number].candidate, each)) {
          point.push_back(*value);
        }
      }
      if (point.size() == parameters.size()) observed.push_back(std::move(point));
    }
    if (!alike) return {std::move(kinds), observed};
    std::vector<double> weights(observed.size(), 1.0);
    return {std::move(kinds), observed, std::move(weights)};
  }

  /// Sets values of these parameters together.
  FRUGAL_INLINE void choose(SearchDomain const& domain, SearchHistory const& seen,
                            TpeSplit const& split, std::vector<std::size_t> const& parameters,
                            bool several, Draw& draw,
                            std::vector<std::optional<double>>& values) const {
    if (parameters.empty()) return;
    if (parameters.size() == 1 && has_one_value(values_of(domain, parameters[0]))) {
      values[parameters[0]] = value_at(values_of(domain, parameters[0]), 0);
      return;
    }
    Parzen const below = density(domain, seen, split.below, parameters, several);
    Parzen const above = density(domain, seen, split.above, parameters, false);
    std::vector<double> best;
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < candidates; ++i) {
      std::vector<double> sample = below.sample(draw);
      double const ratio = below.log_density(sample) - above.log_density(sample);
      if (best.empty() || ratio > most) most = ratio, best = std::move(sample);
    }
    for (std::size_t k = 0; k < parameters.size(); ++k) values[parameters[k]] = best[k];
  }
};

static_assert(SearchSampler<Tpe>);

}  // namespace frugal
