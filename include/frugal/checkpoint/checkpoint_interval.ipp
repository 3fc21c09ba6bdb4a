// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint_interval.hpp>
#include <frugal/inline.hpp>

namespace frugal::plan {

FRUGAL_INLINE double daly_interval(double cost, double lifetime) {
  if (cost >= 2 * lifetime) return lifetime;
  double const ratio = cost / (2 * lifetime);
  return young_interval(cost, lifetime) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
}

FRUGAL_INLINE double expected_time(double work, double interval, double cost,
                                   Failures const& failures) {
  double const segments = work / interval;
  if (std::isinf(failures.lifetime)) return segments * (interval + cost);
  double const lifetime = failures.lifetime;
  return lifetime * std::exp(failures.restart / lifetime) *
         std::expm1((interval + cost) / lifetime) * segments;
}

}  // namespace frugal::plan
