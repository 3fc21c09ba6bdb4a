// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Throughput<...>: unknown option. Options: a cadence in steps, such as Every<100>.
#include <frugal/report/throughput.hpp>

using namespace frugal;

auto good = Throughput<Every<10>>{};
#ifdef FRUGAL_REJECT
auto bad = Throughput<Sample>{};
#endif
