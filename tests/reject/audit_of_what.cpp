// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Audit<...>: unknown option. Options: BitExact.
#include <frugal/report/audit.hpp>

using namespace frugal;

auto good = Audit<>{};
#ifdef FRUGAL_REJECT
Audit<int> bad;
#endif
