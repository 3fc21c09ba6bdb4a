// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: IgnoreIndex<Label, Metric> is for metrics of labels: in a target of boxes it would change coordinates.
// expect: frugal: IgnoreIndex<Label, Metric> is for metrics of labels: MAE, MSE and R2 have none
// expect: frugal: IgnoreIndex<Label, ForTask<...>> would ignore labels of the batch
#include <frugal/metrics/for_task.hpp>
#include <frugal/metrics/ignore_index.hpp>
#include <frugal/metrics/iou.hpp>
#include <frugal/metrics/mean_average_precision.hpp>
#include <frugal/metrics/regression.hpp>

using namespace frugal;

static_assert(sizeof(IgnoreIndex<255, IoU>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(IgnoreIndex<255, MeanAveragePrecision>) != 0);
static_assert(sizeof(IgnoreIndex<0, MAE>) != 0);
static_assert(sizeof(IgnoreIndex<0, ForTask<"kind", IoU>>) != 0);
#endif
