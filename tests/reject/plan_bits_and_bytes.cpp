// SPDX-License-Identifier: Apache-2.0
// expect: frugal: bits are mixed with bytes, of which each is eight bits. Convert first: in_bytes(x) or in_bits(x).
#include <frugal/report/plan/money.hpp>

using namespace frugal::plan;

auto seconds = Gigabytes(5.2) / in_bytes(GigabitsPerSecond(600));
#ifdef FRUGAL_REJECT
auto wrong = Gigabytes(5.2) / GigabitsPerSecond(600);
#endif
