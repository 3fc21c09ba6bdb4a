// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this Budget has no limit. Write Budget<Usd<20>>, Budget<Hours<4>> or Budget<KilowattHours<5>>.
#include <frugal/report/budget.hpp>

using namespace frugal;

auto good = Budget<Usd<20>, Stop>{};
#ifdef FRUGAL_REJECT
Budget<Stop> bad;
#endif
