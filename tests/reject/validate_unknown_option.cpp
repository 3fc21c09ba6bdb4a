// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Validate<...>: unknown option. Options: a cadence such as Every<1, Epoch>, metrics such as Accuracy, and SanityBatches<2>. Names to watch (WatchAccuracy) go to the policy that watches them.
#include <frugal/policy/validate.hpp>
#include <frugal/policy/watched.hpp>

using namespace frugal;

auto good = Validate<Accuracy>{};
#ifdef FRUGAL_REJECT
auto bad = Validate<Every<1, Epoch>, WatchAccuracy>{};
#endif
