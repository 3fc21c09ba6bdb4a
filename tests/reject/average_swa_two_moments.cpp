// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Swa<...>: the same option twice. Keep one From and one cadence.
#include <frugal/policy/average.hpp>

using namespace frugal;

auto good = Average<Swa<From<10, Epoch>>>{};
#ifdef FRUGAL_REJECT
auto bad = Average<Swa<From<10, Epoch>, From<500>>>{};
#endif
