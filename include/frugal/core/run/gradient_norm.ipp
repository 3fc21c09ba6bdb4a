// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/gradient_norm.hpp>

#include <frugal/inline.hpp>

#include <limits>

namespace frugal {

FRUGAL_INLINE double GradientNorm::value() const {
  if (device_.defined()) return device_.item<double>();
  return host_.value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace frugal
