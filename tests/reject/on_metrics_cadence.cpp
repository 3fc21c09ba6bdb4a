// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: OnMetrics<F, Cadence>: the second option is a cadence, such as Every<100> or Every<1, Epoch>.
#include <frugal/report/on_metrics.hpp>

using namespace frugal;

auto good = OnMetrics<>{};
#ifdef FRUGAL_REJECT
auto bad = OnMetrics<void (*)(MetricRecord const&), Sample>{};
#endif
