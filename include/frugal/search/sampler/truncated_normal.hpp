// SPDX-License-Identifier: Apache-2.0
// The normal distribution of mean 0 and variance 1, and its part between two ends, right in the tails.
#pragma once

namespace frugal::detail {

/// ln(sqrt(2 pi))
inline constexpr double log_sqrt_two_pi = 0.918938533204672741780329736406;

/// The logarithm of the probability of a number below x.
///
/// Source  Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 7.1.2 and 26.2.12.
double log_normal_below(double x);

/// ln(e^a + e^b)
double log_of_sum(double a, double b);

/// The logarithm of the probability of a number between a and b, a <= b.
double log_normal_between(double a, double b);

/// The x of which log_normal_below() is `log_probability`, for one of ln(1/2) or less.
double normal_quantile(double log_probability);

/// The number between a and b below which the part `u` of the probability between them lies; u from 0 to 1.
double truncated_normal(double u, double a, double b);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/truncated_normal.ipp>
#endif
