// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Ema<decay>: the decay must be above 0 and below 1. Write Ema<0.999>.
#include <frugal/policy/average.hpp>

using namespace frugal;

auto good = Average<Ema<0.9999>>{};
#ifdef FRUGAL_REJECT
auto bad = Average<Ema<1.0>>{};
#endif
