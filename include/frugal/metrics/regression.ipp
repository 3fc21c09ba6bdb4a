// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/regression.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <limits>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE void MeanOfValues::add(at::Tensor const& each, at::Tensor const& mask) {
  if (mask.defined()) {
    sum_.add(each.masked_fill(mask.logical_not(), 0).sum());
    count_.add(mask.expand_as(each).sum());
  } else {
    sum_.add(each.sum());
    count_.add(static_cast<double>(each.numel()));
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE double R2::result() const {
  if (samples_ < 2) return std::numeric_limits<double>::quiet_NaN();
  at::Tensor const squares = squares_.cpu();
  at::Tensor const residual = residual_.cpu();
  // 1 or 0, and NaN of a NaN prediction.
  at::Tensor const constant = residual.eq(0).to(at::kDouble) + residual * 0;
  return at::where(squares.eq(0), constant, 1 - residual / squares).mean().item<double>();
}

FRUGAL_INLINE void R2::refuse(std::int64_t values) const {
  throw MetricError(
      {.what = "the number of values a sample changes from batch to batch",
       .where = "metric r2",
       .why = "it was " + std::to_string(mean_.numel()) + ", and is " + std::to_string(values),
       .fix = "R2 is a mean over the values of a sample: give each sample as many."});
}

FRUGAL_INLINE void R2::refuse_padding() {
  throw MetricError({.what = "the target is padded",
                     .where = "metric r2",
                     .why = "R2 is a mean over the values of a sample, of which each has as many",
                     .fix = "Measure MAE or MSE, which leave padding out."});
}

FRUGAL_INLINE void R2::move_to(at::Device device) {
  mean_ = mean_.to(device);
  squares_ = squares_.to(device);
  residual_ = residual_.to(device);
}

}  // namespace frugal
