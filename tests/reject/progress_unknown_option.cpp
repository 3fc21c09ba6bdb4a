// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Progress<...>: unknown option. Options: a watched metric such as WatchLoss or WatchAccuracy. How often it draws is not an option: set line_seconds.
#include <frugal/report/progress.hpp>

using namespace frugal;

auto good = Progress<WatchAccuracy>{};
#ifdef FRUGAL_REJECT
auto bad = Progress<Every<10>>{};
#endif
