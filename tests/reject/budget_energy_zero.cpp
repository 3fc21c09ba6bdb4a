// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: KilowattHours<0> is spent before it begins. Write KilowattHours<1> or more.
#include <frugal/report/budget.hpp>

using namespace frugal;

auto good = Budget<KilowattHours<5>, Stop>{};
#ifdef FRUGAL_REJECT
Budget<KilowattHours<0>> bad;
#endif
