// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Schedule<...>: a part is a whole Schedule, as WarmupStableDecay<W, D> is. Write it in the recipe by itself.
#include <frugal/policy/schedule.hpp>

using namespace frugal;

WarmupStableDecay<10, 20> good;
#ifdef FRUGAL_REJECT
Schedule<WarmupStableDecay<10, 20>> bad;
#endif
