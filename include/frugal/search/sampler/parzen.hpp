// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/data/sampling/draw.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/sampler/truncated_normal.hpp>
#include <frugal/search/trials/distribution.hpp>

namespace frugal {

/// The weights of `count` observations in the order of their trials: the newest 25 count 1, and older ones
/// the less the older they are, down to 1 / count.
///
/// Source  Bergstra, Yamins and Cox, "Making a science of model search" (ICML 2013), as Optuna has it.
FRUGAL_INLINE std::vector<double> recency_weights(std::size_t count) {
  std::vector<double> weights(count, 1.0);
  if (count <= 25) return weights;
  std::size_t const older = count - 25;
  double const least = 1 / static_cast<double>(count);
  double const step = older == 1 ? 0 : (1 - least) / static_cast<double>(older - 1);
  for (std::size_t i = 0; i < older; ++i) weights[i] = least + step * static_cast<double>(i);
  if (older > 1) weights[older - 1] = 1;
  return weights;
}

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
  FRUGAL_INLINE Parzen(std::vector<Distribution> dimensions,
                       std::vector<std::vector<double>> const& observed,
                       std::vector<double> weights)
      : weights_(std::move(weights)) {
    if (weights_.size() != observed.size()) refuse(weights_.size(), "weights", observed.size());
    for (std::vector<double> const& each : observed) require_length(each, dimensions.size());
    weights_.push_back(1);
    double const all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (double const each : weights_) log_weights_.push_back(std::log(each / all));
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      std::vector<double> values;
      for (std::vector<double> const& each : observed) values.push_back(each[i]);
      dimensions_.push_back(of_dimension(std::move(dimensions[i]), std::move(values)));
    }
  }

  /// The natural logarithm of the density at a point.
  FRUGAL_INLINE double log_density(std::span<double const> point) const {
    require_length(point, dimensions_.size());
    std::vector<double> logs = log_weights_;
    for (std::size_t i = 0; i < point.size(); ++i) add_logs(dimensions_[i], point[i], logs);
    double const most = std::ranges::max(logs);
    if (std::isinf(most)) return most;
    double sum = 0;
    for (double const each : logs) sum += std::exp(each - most);
    return most + std::log(sum);
  }

  /// A point of this density; takes one number for the kernel, and one for each dimension.
  FRUGAL_INLINE std::vector<double> sample(Draw& draw) const {
    double const all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double left = draw.uniform() * all;
    std::size_t kernel = 0;
    while (kernel + 1 < weights_.size() && left >= weights_[kernel]) left -= weights_[kernel++];
    std::vector<double> point;
    for (Dimension const& each : dimensions_) {
      point.push_back(value_of(each, kernel, draw.uniform()));
    }
    return point;
  }

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

  [[noreturn]] FRUGAL_INLINE static void refuse(std::size_t found, char const* what,
                                                std::size_t expected) {
    throw SettingsError(
        {.what = std::to_string(found) + " " + what + " for " + std::to_string(expected),
         .where = "a Parzen estimator",
         .why = "each point has one value for each dimension, and one weight",
         .fix = "Give as many of the one as of the other."});
  }
  static void require_length(std::span<double const> point, std::size_t dimensions) {
    if (point.size() != dimensions) refuse(point.size(), "values", dimensions);
  }

  FRUGAL_INLINE static Dimension of_dimension(Distribution of, std::vector<double> observed) {
    Dimension own{.values = std::move(of)};
    if (auto const* const choice = std::get_if<Choice>(&own.values)) {
      own.choices = choice->names.size();
      for (double const each : observed) own.names.push_back(static_cast<std::size_t>(each));
      return own;
    }
    if (auto const* const real = std::get_if<Uniform>(&own.values)) {
      own.low = real->low, own.high = real->high;
    } else if (auto const* const rate = std::get_if<LogUniform>(&own.values)) {
      own.low = rate->low, own.high = rate->high, own.log = true;
    } else {
      Int const& whole = std::get<Int>(own.values);
      std::int64_t const steps = (whole.high - whole.low) / whole.step;
      own.low = static_cast<double>(whole.low);
      own.high = static_cast<double>(whole.low + steps * whole.step);
      own.log = whole.log, own.step = static_cast<double>(whole.step);
    }
    own.begin = scaled(own, own.low - own.step / 2), own.end = scaled(own, own.high + own.step / 2);
    for (double& each : observed) each = scaled(own, each);
    own.deviations = deviations_of(observed, own.begin, own.end);
    own.means = std::move(observed);
    own.means.push_back(0.5 * (own.begin + own.end));
    own.deviations.push_back(own.end - own.begin);
    for (std::size_t k = 0; k < own.means.size(); ++k) {
      double const mean = own.means[k], deviation = own.deviations[k];
      own.log_masses.push_back(
          detail::log_normal_between((own.begin - mean) / deviation, (own.end - mean) / deviation));
    }
    return own;
  }

  static double scaled(Dimension const& of, double value) {
    return of.log ? std::log(value) : value;
  }

  FRUGAL_INLINE static std::vector<double> deviations_of(std::vector<double> const& means,
                                                         double begin, double end) {
    std::size_t const count = means.size();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t k) { return std::pair(means[k], k); });
    double const range = end - begin;
    double const least = range / std::min(100.0, 2 + static_cast<double>(count));
    std::vector<double> deviations(count);
    for (std::size_t k = 0; k < count; ++k) {
      double const mean = means[order[k]];
      double below = mean - (k == 0 ? begin : means[order[k - 1]]);
      double above = (k + 1 == count ? end : means[order[k + 1]]) - mean;
      // The ends are neighbours of a single observation only.
      if (count > 1 && k == 0) below = 0;
      if (count > 1 && k + 1 == count) above = 0;
      deviations[order[k]] = std::clamp(std::max(below, above), least, range);
    }
    return deviations;
  }

  /// Adds the logarithm of each kernel's density at this value.
  FRUGAL_INLINE static void add_logs(Dimension const& of, double value, std::vector<double>& logs) {
    std::size_t const count = logs.size();
    if (of.choices != 0) {
      // An observed name has 1 more than the 1 / kernels of each name.
      auto const kernels = static_cast<double>(count), choices = static_cast<double>(of.choices);
      double const other = -std::log(kernels + choices);
      double const same = std::log1p(kernels) + other;
      for (std::size_t k = 0; k + 1 < count; ++k) {
        logs[k] += static_cast<double>(of.names[k]) == value ? same : other;
      }
      logs.back() -= std::log(choices);
      return;
    }
    bool const inside = value >= of.low && value <= of.high;
    if (inside && !(of.begin < of.end)) return;  // one value, which each kernel has
    double const x = inside ? scaled(of, value) : 0;
    double const left = inside && of.step > 0 ? scaled(of, value - of.step / 2) : 0;
    double const right = inside && of.step > 0 ? scaled(of, value + of.step / 2) : 0;
    for (std::size_t k = 0; k < count; ++k) {
      double const mean = of.means[k], deviation = of.deviations[k];
      if (!inside) {
        logs[k] = -std::numeric_limits<double>::infinity();
      } else if (of.step > 0) {
        logs[k] +=
            detail::log_normal_between((left - mean) / deviation, (right - mean) / deviation) -
            of.log_masses[k];
      } else {
        double const z = (x - mean) / deviation;
        logs[k] += -0.5 * z * z - detail::log_sqrt_two_pi - std::log(deviation) - of.log_masses[k];
      }
    }
  }

  FRUGAL_INLINE static double value_of(Dimension const& of, std::size_t kernel, double u) {
    if (of.choices != 0) {
      auto const choices = static_cast<double>(of.choices);
      if (kernel == of.names.size()) return value_at(of.values, u);
      auto const kernels = static_cast<double>(of.names.size() + 1);
      double const other = 1 / (kernels + choices), name = static_cast<double>(of.names[kernel]);
      // The part of u that is the observed name's is cut out, and the others share the rest.
      if (u < (1 + kernels) * other) return name;
      double const index = std::floor((u - (1 + kernels) * other) / other);
      double const most = std::max(choices - 2, 0.0);
      double const place = std::min(index, most);
      return place < name ? place : std::min(place + 1, choices - 1);
    }
    double const mean = of.means[kernel], deviation = of.deviations[kernel];
    if (!(of.begin < of.end)) return of.low;
    double const x = mean + deviation * detail::truncated_normal(u, (of.begin - mean) / deviation,
                                                                 (of.end - mean) / deviation);
    double value = of.log ? std::exp(x) : x;
    if (of.step > 0) value = of.low + std::round((value - of.low) / of.step) * of.step;
    return std::clamp(value, of.low, of.high);
  }

  std::vector<double> weights_{}, log_weights_{};
  std::vector<Dimension> dimensions_{};
};

}  // namespace frugal
