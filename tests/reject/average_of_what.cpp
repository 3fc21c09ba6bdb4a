// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Average is told how. Write Average<Ema<0.999_r>>, or Average<Swa<From<10, Epoch>>>.
#include <frugal/policy/average.hpp>

using namespace frugal;

auto good = Average<Swa<From<10>, Every<5>>>{};
#ifdef FRUGAL_REJECT
Average<Every<5>> bad;
#endif
