// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/rollback/loss_mean.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE void LossMean::add(double loss) {
  ++count_;
  double const share = std::max(0.02, 1.0 / static_cast<double>(count_));
  value_ += (loss - value_) * share;
  magnitude_ += (std::abs(loss) - magnitude_) * share;
}

}  // namespace frugal::detail
