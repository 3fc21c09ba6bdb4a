// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/compute_optimal.hpp>

#include <frugal/inline.hpp>

#include <cmath>

namespace frugal::plan {

FRUGAL_INLINE Allocation compute_optimal(double flops, ScalingFit const& fit) {
  detail::require_positive("compute", flops);
  return {.parameters = fit.a * std::pow(flops, fit.alpha),
          .tokens = fit.b * std::pow(flops, fit.beta)};
}

FRUGAL_INLINE Allocation by_tokens_per_parameter(double flops, double ratio) {
  detail::require_positive("compute", flops);
  detail::require_positive("tokens per parameter", ratio);
  double const parameters = std::sqrt(flops / (6 * ratio));
  return {.parameters = parameters, .tokens = ratio * parameters};
}

FRUGAL_INLINE OptimalPlan optimal_plan(double flops, ScalingFit const& fit, double ratio) {
  return {.flops = flops,
          .fit = compute_optimal(flops, fit),
          .rule = by_tokens_per_parameter(flops, ratio)};
}

}  // namespace frugal::plan
