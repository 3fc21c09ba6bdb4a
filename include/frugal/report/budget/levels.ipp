// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/budget/levels.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::optional<double> Levels::look(double share) {
  while (told_ > 0 && share < told_ - hysteresis_) told_ = below(told_);
  double highest = 0;
  for (double const level : levels_) {
    if (share >= level) highest = level;
  }
  if (!(highest > told_)) return {};
  told_ = highest;
  return highest;
}

FRUGAL_INLINE double Levels::below(double level) const {
  double found = 0;
  for (double const each : levels_) {
    if (each < level) found = each;
  }
  return found;
}

}  // namespace frugal::detail
