// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Usd<0> is spent before it begins. Write Usd<1> or more; cents go into the member `limit`.
#include <frugal/report/budget.hpp>

using namespace frugal;

auto good = Budget<Usd<20>>{};
#ifdef FRUGAL_REJECT
Budget<Usd<0>> bad;
#endif
