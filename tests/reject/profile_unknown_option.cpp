// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Profile<...>: unknown option. Options: the length of a window such as Seconds<3> or Steps<20>, a cadence such as PerEpoch or Every<1000>, and Nvtx.
#include <frugal/report/profile.hpp>

using namespace frugal;

auto good = Profile<Seconds<3>, PerEpoch, Nvtx>{};
#ifdef FRUGAL_REJECT
auto bad = Profile<Epochs<3>>{};
#endif
