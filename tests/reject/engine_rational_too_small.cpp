// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a number in a template argument has at most 15 digits before and after its point
#include <frugal/core/compose/rational.hpp>

constexpr frugal::Rational sound = 1e-15;
#ifdef FRUGAL_REJECT
constexpr frugal::Rational unsound = 1e-16;
#endif
