// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Checkpoint<...>: unknown option. Options: Every, Keep, KeepBest, KeepEvery, Async, WeightsIn.
#include <frugal/policy/checkpoint.hpp>

using namespace frugal;

auto good = Checkpoint<Async, WeightsIn<BF16>, KeepEvery<10000>, Keep<3>>{};
#ifdef FRUGAL_REJECT
auto bad = Checkpoint<Every<500>, Patience<3>>{};
#endif
