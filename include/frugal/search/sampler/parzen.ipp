// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/parzen.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

namespace frugal {

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

FRUGAL_INLINE Parzen::Parzen(std::vector<Distribution> dimensions,
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

FRUGAL_INLINE double Parzen::log_density(std::span<double const> point) const {
  require_length(point, dimensions_.size());
  std::vector<double> logs = log_weights_;
  for (std::size_t i = 0; i < point.size(); ++i) add_logs(dimensions_[i], point[i], logs);
  double const most = std::ranges::max(logs);
  if (std::isinf(most)) return most;
  double sum = 0;
  for (double const each : logs) sum += std::exp(each - most);
  return most + std::log(sum);
}

FRUGAL_INLINE std::vector<double> Parzen::sample(Draw& draw) const {
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

FRUGAL_INLINE void Parzen::refuse(std::size_t found, char const* what, std::size_t expected) {
  throw SettingsError(
      {.what = std::to_string(found) + " " + what + " for " + std::to_string(expected),
       .where = "a Parzen estimator",
       .why = "each point has one value for each dimension, and one weight",
       .fix = "Give as many of the one as of the other."});
}

FRUGAL_INLINE Parzen::Dimension Parzen::of_dimension(Distribution of,
                                                     std::vector<double> observed) {
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

FRUGAL_INLINE std::vector<double> Parzen::deviations_of(std::vector<double> const& means,
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

FRUGAL_INLINE void Parzen::add_logs(Dimension const& of, double value, std::vector<double>& logs) {
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
      logs[k] += detail::log_normal_between((left - mean) / deviation, (right - mean) / deviation) -
                 of.log_masses[k];
    } else {
      double const z = (x - mean) / deviation;
      logs[k] += -0.5 * z * z - detail::log_sqrt_two_pi - std::log(deviation) - of.log_masses[k];
    }
  }
}

FRUGAL_INLINE double Parzen::value_of(Dimension const& of, std::size_t kernel, double u) {
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

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE double log_normal_below(double x) {
  if (x > 5) return std::log1p(-0.5 * std::erfc(x / std::numbers::sqrt2));
  if (x > -30) return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2));
  if (std::isinf(x)) return x;
  // erfc() comes close to the smallest double. Its asymptotic series has five terms of 1e-16 or more here.
  double const square = x * x;
  double term = 1, sum = 1;
  for (int k = 1; k <= 6; ++k) sum += term *= -(2 * k - 1) / square;
  return -0.5 * square - std::log(-x) - log_sqrt_two_pi + std::log(sum);
}

FRUGAL_INLINE double log_of_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  if (std::isinf(b) && b < 0) return a;
  return a + std::log1p(std::exp(b - a));
}

FRUGAL_INLINE double log_normal_between(double a, double b) {
  if (!(a < b)) return -std::numeric_limits<double>::infinity();
  // By symmetry, most of it is below 0 now.
  if (a + b > 0) std::tie(a, b) = std::pair(-b, -a);
  double const width = b - a;
  if (width * std::max(1.0, -a) < 1e-3) {
    // Two probabilities would cancel: the density in the middle and its curvature are exact to 1e-14.
    double const middle = 0.5 * (a + b);
    return -0.5 * middle * middle - log_sqrt_two_pi + std::log(width) +
           std::log1p((middle * middle - 1) * width * width / 24);
  }
  if (b <= 0) {
    double const below = log_normal_below(b);
    return below + std::log(-std::expm1(log_normal_below(a) - below));
  }
  double const outside =
      0.5 * (std::erfc(-a / std::numbers::sqrt2) + std::erfc(b / std::numbers::sqrt2));
  if (outside < 0.5) return std::log1p(-outside);
  return std::log(0.5 * (std::erf(b / std::numbers::sqrt2) + std::erf(-a / std::numbers::sqrt2)));
}

FRUGAL_INLINE double normal_quantile(double log_probability) {
  // log_normal_below() is concave, and at most ln(1/2) - x^2 / 2. So this begins below the root, and each of
  // Newton's steps comes closer to it without passing it.
  double x = -std::sqrt(std::max(0.0, -2 * (log_probability + std::numbers::ln2)));
  if (std::isinf(x)) return x;
  for (int i = 0; i < 50; ++i) {
    double const found = log_normal_below(x);
    double const step = (log_probability - found) * std::exp(found + 0.5 * x * x + log_sqrt_two_pi);
    x += step;
    if (!(std::abs(step) > 1e-13 * std::abs(x))) break;
  }
  return x;
}

FRUGAL_INLINE double truncated_normal(double u, double a, double b) {
  if (!(a < b)) return a;
  double const between = log_normal_between(a, b);
  // The smaller one of the two has all its digits.
  double const below = log_of_sum(log_normal_below(a), std::log(u) + between);
  double const above = log_of_sum(log_normal_below(-b), std::log1p(-u) + between);
  double const x = below < above ? normal_quantile(below) : -normal_quantile(above);
  return std::clamp(x, a, b);
}

}  // namespace frugal::detail
