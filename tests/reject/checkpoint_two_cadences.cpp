// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Checkpoint is told one thing twice. Write one cadence, one Keep and one KeepEvery; several KeepBest are allowed.
#include <frugal/policy/checkpoint.hpp>

using namespace frugal;

auto good = Checkpoint<Every<500>, KeepBest<>, KeepBest<WatchAccuracy>>{};
#ifdef FRUGAL_REJECT
auto bad = Checkpoint<Every<500>, Every<1, Epoch>>{};
#endif
