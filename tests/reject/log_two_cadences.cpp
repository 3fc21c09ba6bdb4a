// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Log<...>: two cadences. Write one Log for each of them.
#include <frugal/report/log.hpp>

using namespace frugal;

auto good = Log<Every<100>>{};
#ifdef FRUGAL_REJECT
auto bad = Log<Every<100>, Every<1, Epoch>>{};
#endif
