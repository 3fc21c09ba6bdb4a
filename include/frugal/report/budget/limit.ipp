// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/budget/limit.hpp>

#include <frugal/base/number_text.hpp>
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

FRUGAL_INLINE std::string amount_text(double amount, std::string_view unit) {
  // Four significant digits below 1000.
  int const digits = amount > 0 && amount < 1000
                         ? std::clamp(3 - static_cast<int>(std::floor(std::log10(amount))), 0, 300)
                         : 0;
  return fixed_short(amount, digits) + " " + std::string(unit);
}

FRUGAL_INLINE std::optional<double> SlidingRate::look(double hours, double amount) {
  if (count_ == 0 || hours - at(count_ - 1).hours >= window_ / 32) {
    if (count_ == samples_.size()) drop();
    samples_[(first_ + count_++) % samples_.size()] = {hours, amount};
  }
  while (count_ > 1 && hours - at(1).hours >= window_) drop();
  double const span = hours - at(0).hours;
  if (span < window_ || !(span > 0)) return {};
  return (amount - at(0).amount) / span;
}

FRUGAL_INLINE void SlidingRate::drop() {
  first_ = (first_ + 1) % samples_.size();
  --count_;
}

}  // namespace frugal::detail
