// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Throughput<...>: two cadences. Keep one, such as Every<100>.
#include <frugal/report/throughput.hpp>

using namespace frugal;

auto good = Throughput<>{};
#ifdef FRUGAL_REJECT
auto bad = Throughput<Every<10>, Every<100>>{};
#endif
