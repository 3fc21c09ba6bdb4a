// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Log<...>: unknown option. Options: a cadence such as Every<100> or Every<1, Epoch>.
#include <frugal/report/log.hpp>

using namespace frugal;

auto good = Log<Every<1, Epoch>>{};
#ifdef FRUGAL_REJECT
auto bad = Log<Sample>{};
#endif
