// SPDX-License-Identifier: Apache-2.0
// expect: frugal: these two quantities have units that do not fit each other.
#include <frugal/report/plan/money.hpp>

using namespace frugal::plan;

auto sum = Usd(20) + Usd(1);
#ifdef FRUGAL_REJECT
auto wrong = Usd(20) + Seconds(1);
#endif
