// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Progress<...>: two watched metrics. Keep one.
#include <frugal/report/progress.hpp>

using namespace frugal;

auto good = Progress<WatchAccuracy>{};
#ifdef FRUGAL_REJECT
auto bad = Progress<WatchAccuracy, WatchLoss>{};
#endif
