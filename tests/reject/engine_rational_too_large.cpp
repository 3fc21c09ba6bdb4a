// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this rational literal is too large
#include <frugal/core/compose/rational.hpp>

using namespace frugal::literals;
constexpr frugal::Rational sound = 1e15_r;
#ifdef FRUGAL_REJECT
constexpr frugal::Rational unsound = 1e16_r;
#endif
