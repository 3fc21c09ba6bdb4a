// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/class_weights.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE at::Tensor const& ClassWeights::of(std::int64_t classes, at::Tensor const& logits,
                                                 char const* where) const {
  if (weights_.numel() != classes) {
    throw ShapeError(
        {.what = "there is not a weight for each class",
         .where = where,
         .why = std::to_string(weights_.numel()) + " weights, logits are " +
                detail::shape_text(logits),
         .fix = "Give a weight for each of the classes, " + std::to_string(classes) + " here."});
  }
  if (!placed_.defined() || placed_.device() != logits.device() ||
      placed_.scalar_type() != logits.scalar_type()) {
    placed_ = weights_.to(logits.options().requires_grad(false));
  }
  return placed_;
}

}  // namespace frugal
