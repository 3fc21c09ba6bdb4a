// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: TrainMetrics<...>: unknown option. Options: a cadence such as Every<100>, and metrics such as Accuracy.
#include <frugal/metrics/accuracy.hpp>
#include <frugal/policy/train_metrics.hpp>

using namespace frugal;

static_assert(sizeof(TrainMetrics<Accuracy, Every<5>>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(TrainMetrics<int>) != 0);
#endif
