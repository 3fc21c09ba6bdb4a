// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a rational literal is decimal, such as 0.1_r or 3e-4_r
#include <frugal/core/compose/rational.hpp>

using namespace frugal::literals;
constexpr frugal::Rational sound = 0.1_r;
#ifdef FRUGAL_REJECT
constexpr frugal::Rational unsound = 0x10_r;
#endif
