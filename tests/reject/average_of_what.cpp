// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Average<...>: unknown rule. Options: Ema<decay>, Swa<From<N, Epoch>>, or an AverageRule of your own.
#include <frugal/policy/average.hpp>

using namespace frugal;

auto good = Average<Swa<From<10>, Every<5>>>{};
#ifdef FRUGAL_REJECT
Average<Every<5>> bad;
#endif
