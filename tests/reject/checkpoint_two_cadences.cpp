// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Checkpoint<...>: the same option twice. Keep one cadence, one Keep, one KeepEvery, one Async and one WeightsIn; only KeepBest may be repeated.
#include <frugal/policy/checkpoint.hpp>

using namespace frugal;

auto good = Checkpoint<Every<500>, KeepBest<>, KeepBest<WatchAccuracy>>{};
#ifdef FRUGAL_REJECT
auto bad = Checkpoint<Every<500>, Every<1, Epoch>>{};
#endif
