// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: BurnRate<...>: unknown option. Options: a limit such as Usd<3> or KilowattHours<1>; PerHour or PerDay; Stop; Webhook; NotifyCommand.
#include <frugal/report/burn_rate.hpp>

using namespace frugal;

auto good = BurnRate<KilowattHours<1>, PerDay>{};
#ifdef FRUGAL_REJECT
BurnRate<Hours<3>, PerHour> bad;
#endif
