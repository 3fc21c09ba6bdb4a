// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Csv<...>: unknown option. Options: a cadence such as Every<100> or Every<1, Epoch>.
#include <frugal/report/csv.hpp>

using namespace frugal;

auto good = Csv<Every<1, Epoch>>{};
#ifdef FRUGAL_REJECT
auto bad = Csv<Sample>{};
#endif
