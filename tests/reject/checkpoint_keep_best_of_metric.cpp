// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: KeepBest<...>: this is not a watched metric. Write KeepBest<WatchAccuracy>, or KeepBest<Watch<"f1", Better::higher>>.
#include <frugal/metrics/accuracy.hpp>
#include <frugal/policy/checkpoint/options.hpp>

using namespace frugal;

KeepBest<WatchAccuracy> good;
#ifdef FRUGAL_REJECT
KeepBest<Accuracy> bad;
#endif
