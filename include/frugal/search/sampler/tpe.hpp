// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// The weights of `count` observations in the order of their trials: the newest 25 count 1, and older ones
/// the less the older they are, down to 1 / count.
///
/// Source  Bergstra, Yamins and Cox, "Making a science of model search" (ICML 2013), as Optuna has it.
std::vector<double> recency_weights(std::size_t count);

/// A density over points of several distributions, learned from observed points: a mixture of one kernel for
/// each of them, and of a broad one, the prior. A kernel is a product over dimensions. For a number it is a
/// normal distribution between the ends, of the logarithm where the distribution has that, and of whole
/// numbers the part of it that rounds to them. Its mean is the observed number, and its deviation the
/// distance to the farther one of its two neighbours, but at least the range divided by the number of kernels
/// + 1 (100 at most), and at most the range; the prior has the middle and the range. Of equal numbers the one
/// of the earlier trial is first. For a name it has the observed name, and a little of each other one. The
/// density is that of the logarithm where a distribution is by its logarithm, and a probability for whole
/// numbers and names.
///
/// Cost    kernels times dimensions, for a density as for the memory; a sample is one kernel's.
/// Errors  SettingsError for points of another length than `dimensions`, or for other than one weight each.
/// Source  Bergstra et al., "Algorithms for hyper-parameter optimization" (NeurIPS 2011); Watanabe,
///         "Tree-structured Parzen estimator" (2023); the kernels and constants are those of Optuna 5.
class Parzen {
 public:
  /// Observed points in the order of their trials, with recency_weights().
  Parzen(std::vector<Distribution> dimensions, std::vector<std::vector<double>> const& observed)
      : Parzen(std::move(dimensions), observed, recency_weights(observed.size())) {}

  /// With a weight for each; the prior weighs 1.
  Parzen(std::vector<Distribution> dimensions, std::vector<std::vector<double>> const& observed,
         std::vector<double> weights);

  /// The natural logarithm of the density at a point.
  double log_density(std::span<double const> point) const;

  /// A point of this density; takes one number for the kernel, and one for each dimension.
  std::vector<double> sample(Draw& draw) const;

 private:
  /// The kernels in one dimension. For numbers: on the scale of the kernels, by logarithm or not.
  struct Dimension {
    Distribution values{};
    bool log = false;
    double step = 0;  ///< of whole numbers; 0 for real ones
    double low = 0, high = 0;
    double begin = 0, end = 0;  ///< on the scale of the kernels, half a step beyond low and high
    std::vector<double> means{}, deviations{}, log_masses{};
    std::vector<std::size_t> names{};  ///< observed ones, of a choice
    std::size_t choices = 0;           ///< 0 for numbers
  };

  [[noreturn]] static void refuse(std::size_t found, char const* what, std::size_t expected);
  static void require_length(std::span<double const> point, std::size_t dimensions) {
    if (point.size() != dimensions) refuse(point.size(), "values", dimensions);
  }

  static Dimension of_dimension(Distribution of, std::vector<double> observed);

  static double scaled(Dimension const& of, double value) {
    return of.log ? std::log(value) : value;
  }

  static std::vector<double> deviations_of(std::vector<double> const& means, double begin,
                                           double end);

  /// Adds the logarithm of each kernel's density at this value.
  static void add_logs(Dimension const& of, double value, std::vector<double>& logs);

  static double value_of(Dimension const& of, std::size_t kernel, double u);

  std::vector<double> weights_{}, log_weights_{};
  std::vector<Dimension> dimensions_{};
};

}  // namespace frugal

// The normal distribution of mean 0 and variance 1, and its part between two ends, right in the tails.

namespace frugal::detail {

/// ln(sqrt(2 pi))
inline constexpr double log_sqrt_two_pi = 0.918938533204672741780329736406;

/// The logarithm of the probability of a number below x.
///
/// Source  Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 7.1.2 and 26.2.12.
double log_normal_below(double x);

/// ln(e^a + e^b)
double log_of_sum(double a, double b);

/// The logarithm of the probability of a number between a and b, a <= b.
double log_normal_between(double a, double b);

/// The x of which log_normal_below() is `log_probability`, for one of ln(1/2) or less.
double normal_quantile(double log_probability);

/// The number between a and b below which the part `u` of the probability between them lies; u from 0 to 1.
double truncated_normal(double u, double a, double b);

}  // namespace frugal::detail

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
