// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: BurnRate<...>: the same option twice. Keep one limit, one of PerHour and PerDay, one Stop, one Webhook and one NotifyCommand.
#include <frugal/report/burn_rate.hpp>

using namespace frugal;

auto good = BurnRate<Usd<3>>{};
#ifdef FRUGAL_REJECT
BurnRate<Usd<3>, PerHour, PerDay> bad;
#endif
