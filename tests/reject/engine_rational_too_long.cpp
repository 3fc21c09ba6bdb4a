// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a number in a template argument has at most 15 digits before and after its point
#include <frugal/core/compose/rational.hpp>

constexpr frugal::Rational sound = 0.123456789012345;
#ifdef FRUGAL_REJECT
constexpr frugal::Rational unsound = 0.12345678901234567;
#endif
