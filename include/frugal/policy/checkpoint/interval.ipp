// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/interval.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE double automatic_interval(SaveCost cost, double share,
                                        std::optional<double> lifetime) {
  double const least = std::max(cost.write * 10, 1.0);
  double const wanted =
      lifetime ? plan::daly_interval(cost.stall, *lifetime) : cost.stall * (1 - share) / share;
  return std::max(wanted, least);
}

}  // namespace frugal::detail
