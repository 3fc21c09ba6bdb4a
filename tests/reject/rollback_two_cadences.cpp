// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Rollback<...>: two cadences. Keep one, such as Every<100>.
#include <frugal/policy/rollback.hpp>

using namespace frugal;

auto good = Rollback<>{};
#ifdef FRUGAL_REJECT
auto bad = Rollback<Every<10>, Every<100>>{};
#endif
