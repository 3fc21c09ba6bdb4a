// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: IgnoreIndex<Label, Metric> is for metrics of labels: in a target of boxes it would change coordinates.
#include <frugal/metrics/ignore_index.hpp>
#include <frugal/metrics/iou.hpp>
#include <frugal/metrics/mean_average_precision.hpp>

using namespace frugal;

static_assert(sizeof(IgnoreIndex<255, IoU>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(IgnoreIndex<255, MeanAveragePrecision>) != 0);
#endif
