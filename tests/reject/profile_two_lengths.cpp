// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Profile<...>: two options of one kind. Keep one length, one cadence and one Nvtx.
#include <frugal/report/profile.hpp>

using namespace frugal;

auto good = Profile<Steps<20>, Every<1000>>{};
#ifdef FRUGAL_REJECT
auto bad = Profile<Steps<20>, Seconds<3>>{};
#endif
