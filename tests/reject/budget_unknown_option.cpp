// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Budget<...>: unknown option. Options: a limit such as Usd<20>, Hours<4> or KilowattHours<5>; Stop; Webhook; NotifyCommand.
#include <frugal/report/budget.hpp>

using namespace frugal;

auto good = Budget<Hours<4>, NotifyCommand>{};
#ifdef FRUGAL_REJECT
Budget<Usd<20>, PerHour> bad;
#endif
