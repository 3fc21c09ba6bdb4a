// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Budget<...>: the same option twice. Keep one limit, one Stop, one Webhook and one NotifyCommand.
#include <frugal/report/budget.hpp>

using namespace frugal;

auto good = Budget<Usd<20>>{};
#ifdef FRUGAL_REJECT
Budget<Usd<20>, Hours<4>> bad;
#endif
