// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune without Cubic prunes once, and a cadence changes nothing. Add Cubic<1000>, or remove the cadence.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<Magnitude, Sparsity<0.5>, Cubic<10>, Every<5>> good;
#ifdef FRUGAL_REJECT
Prune<Magnitude, Sparsity<0.5>, Every<5>> bad;
#endif
