// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: StepDecay<N>: N is the number of steps between two decays, at least 1. Write StepDecay<1>.
#include <frugal/policy/schedule.hpp>

using namespace frugal;

auto good = StepDecay<1>{};
#ifdef FRUGAL_REJECT
auto bad = StepDecay<0>{};
#endif
