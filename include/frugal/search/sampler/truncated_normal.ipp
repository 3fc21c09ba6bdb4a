// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/truncated_normal.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>
#include <utility>

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
