// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: OnMetrics<F, Cadence>: F is called with a MetricRecord const&. Write OnMetrics<> for a std::function, or OnMetrics<F, Every<10>>.
#include <frugal/report/on_metrics.hpp>

using namespace frugal;

auto good = OnMetrics<>{};
#ifdef FRUGAL_REJECT
auto bad = OnMetrics<Every<100>>{};
#endif
