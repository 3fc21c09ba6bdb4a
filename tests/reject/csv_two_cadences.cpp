// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Csv<...>: two cadences. Write one Csv for each of them.
#include <frugal/report/csv.hpp>

using namespace frugal;

auto good = Csv<Every<100>>{};
#ifdef FRUGAL_REJECT
auto bad = Csv<Every<100>, Every<1, Epoch>>{};
#endif
