// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this rational literal has more digits than a double can hold
#include <frugal/core/compose/rational.hpp>

using namespace frugal::literals;
constexpr frugal::Rational sound = 0.123456789012345_r;
#ifdef FRUGAL_REJECT
constexpr frugal::Rational unsound = 0.12345678901234567_r;
#endif
