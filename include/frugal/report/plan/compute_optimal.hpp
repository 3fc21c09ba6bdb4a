// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/require.hpp>

namespace frugal::plan {

/// A model and its training data.
struct Allocation {
  double parameters = 0;
  double tokens = 0;

  /// Floating-point operations of its training: 6 per parameter and token, of which forward takes 2
  /// and backward 4 (Kaplan et al., "Scaling Laws for Neural Language Models", 2020, section 2.1).
  constexpr double flops() const { return 6 * parameters * tokens; }
  constexpr double tokens_per_parameter() const { return tokens / parameters; }
};

/// N = a C^alpha and D = b C^beta, for a compute budget of C FLOP.
///
/// Do not plan with the defaults: the model and tokens that they name cost 2.65 times the budget.
/// They are coefficients as they circulate, for comparison; their exponents fit the first approach
/// of Hoffmann et al., "Training Compute-Optimal Large Language Models" (2022): 0.50 and 0.50. They
/// are no solution of C = 6ND: they multiply to a b = 0.4419, where it asks for 1/6 = 0.1667. Give
/// your own, or use by_tokens_per_parameter. docs/plan.md has more.
struct ScalingFit {
  double a = 0.2536;
  double alpha = 0.4995;
  double b = 1.7424;
  double beta = 0.5005;
};

/// With the default coefficients 2.65 times as expensive as the budget (see ScalingFit); compare
/// Allocation::flops with it.
Allocation compute_optimal(double flops, ScalingFit const& fit = {});

/// The common rule: 20 tokens per parameter, and C = 6ND.
Allocation by_tokens_per_parameter(double flops, double ratio = 20);

/// Both allocations of one budget, and how far they are from each other.
struct OptimalPlan {
  double flops = 0;  ///< the budget
  Allocation fit{};
  Allocation rule{};

  /// 6ND of the fit over the budget; 1 if it could be afforded.
  double fit_over_budget() const { return fit.flops() / flops; }
  double parameters_ratio() const { return fit.parameters / rule.parameters; }
  double tokens_ratio() const { return fit.tokens / rule.tokens; }
};

OptimalPlan optimal_plan(double flops, ScalingFit const& fit = {}, double ratio = 20);

/// What a device really does: its peak, in FLOP/s, times the share of it that training reaches.
struct Speed {
  double peak = 0;
  double utilisation = 0.3;

  constexpr double flops_per_second() const {
    detail::require_positive("peak FLOP/s", peak);
    detail::require_share("utilisation", utilisation);
    return peak * utilisation;
  }
};

constexpr double flops_in(DeviceHours time, Speed const& speed) {
  detail::require_not_negative("device-hours", time.value());
  return time.value() * 3600 * speed.flops_per_second();
}
constexpr DeviceHours time_for(double flops, Speed const& speed) {
  detail::require_not_negative("compute", flops);
  return DeviceHours(flops / speed.flops_per_second() / 3600);
}
/// The compute that a sum of money buys.
constexpr double flops_for(Usd money, PricePerDevice price, Speed const& speed) {
  detail::require_not_negative("money", money.value());
  detail::require_positive("price", price.value());
  return flops_in(money / price, speed);
}

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/compute_optimal.ipp>
#endif
