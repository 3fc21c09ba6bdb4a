// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: DevicePrefetch<...>: unknown option. Options: Depth<N>, the number of batches on the device at a time. Write DevicePrefetch<Depth<2>>.
#include <frugal/policy/device_prefetch.hpp>

using namespace frugal;

auto good = DevicePrefetch<Depth<2>>{};
#ifdef FRUGAL_REJECT
DevicePrefetch<Every<2>> bad;
#endif
