// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/draw.hpp>

#include <frugal/inline.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace frugal {

FRUGAL_INLINE std::uint64_t Draw::below(std::uint64_t count) {
  std::uint64_t const refused = (0 - count) % count;
  while (true) {
    Wide const product = Wide{bits()} * count;
    if (static_cast<std::uint64_t>(product) >= refused) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

FRUGAL_INLINE double Draw::normal() {
  double const radius = std::sqrt(-2 * std::log1p(-uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

FRUGAL_INLINE double Draw::gamma(double shape) {
  if (shape < 1) return gamma(shape + 1) * std::pow(1 - uniform(), 1 / shape);
  double const d = shape - 1.0 / 3;
  double const c = 1 / std::sqrt(9 * d);
  while (true) {
    double const x = normal();
    double const root = 1 + c * x;
    if (root <= 0) continue;
    double const v = root * root * root;
    if (std::log1p(-uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

FRUGAL_INLINE double Draw::beta(double a, double b) {
  double const x = gamma(a);
  double const y = gamma(b);
  // Shapes near 0 underflow both, and then the mass lies at the two ends.
  if (x + y < std::numeric_limits<double>::min()) return chance(a / (a + b)) ? 1 : 0;
  return x / (x + y);
}

}  // namespace frugal
