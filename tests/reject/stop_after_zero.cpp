// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Hours<0> is over before it begins. Write Hours<1> or more.
#include <frugal/policy/stop_after.hpp>

using namespace frugal;

auto good = StopAfter<Hours<1>>{};
#ifdef FRUGAL_REJECT
StopAfter<Hours<0>> bad;
#endif
