// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T positions, ... whatever one position has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

#include <frugal/core/run/loss.hpp>

namespace frugal {

/// The mean of values [B, T, ...] over the positions at which a bool mask [B, T] is true, with
/// their number as its weight. Values at other positions, NaN included, have no effect and no
/// gradient. A mask that is false everywhere gives 0 with weight 0.
///
/// `counted`: the number of true positions, if the host knows it; otherwise a mask on a device is
/// counted there, with a host sync. Throws ShapeError with both shapes if the mask does not fit.
Loss masked_mean(at::Tensor const& values, at::Tensor const& mask,
                 std::optional<std::int64_t> counted = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/masked_mean.ipp>
#endif
