// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: TrainMetrics<...>: two cadences. Keep one, such as Every<100>.
#include <frugal/metrics/accuracy.hpp>
#include <frugal/policy/train_metrics.hpp>

using namespace frugal;

static_assert(sizeof(TrainMetrics<Accuracy, Every<5>>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(TrainMetrics<Every<5>, Every<7>>) != 0);
#endif
