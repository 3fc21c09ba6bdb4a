// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/budget/sliding_rate.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

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
