// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/search/trials/distribution.hpp>

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

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/parzen.ipp>
#endif
