// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Device<...>: unknown option. Options: Depth<N>, the number of batches on the device at a time. Write Device<Depth<2>>.
#include <frugal/policy/device.hpp>

using namespace frugal;

auto good = Device<Depth<2>>{};
#ifdef FRUGAL_REJECT
Device<Every<2>> bad;
#endif
