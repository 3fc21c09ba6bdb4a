// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: best_checkpoint<...>: this is not a watched metric. Write best_checkpoint<WatchAccuracy>(run), or Watch<"f1", Better::higher>.
#include <frugal/metrics/accuracy.hpp>
#include <frugal/policy/checkpoint/find.hpp>

using namespace frugal;

template <class Metric>
void find() {
  static_cast<void>(best_checkpoint<Metric>("runs/demo"));
}
template void find<WatchAccuracy>();
#ifdef FRUGAL_REJECT
template void find<Accuracy>();
#endif
