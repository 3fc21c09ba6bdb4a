// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this BurnRate has no limit. Write BurnRate<Usd<3>, PerHour>.
#include <frugal/report/burn_rate.hpp>

using namespace frugal;

auto good = BurnRate<Usd<3>, Stop>{};
#ifdef FRUGAL_REJECT
BurnRate<PerHour> bad;
#endif
