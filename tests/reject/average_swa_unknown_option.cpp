// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Swa<...>: unknown option. Options: From<N> or From<N, Epoch>, and a cadence such as Every<1, Epoch>.
#include <frugal/policy/average.hpp>

using namespace frugal;

auto good = Average<Swa<Every<1, Epoch>, From<10, Epoch>>>{};
#ifdef FRUGAL_REJECT
auto bad = Average<Swa<From<10, Epoch>, Sample>>{};
#endif
