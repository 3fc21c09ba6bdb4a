// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Steps<0> is over before it begins. Write Steps<1> or more.
#include <frugal/report/profile.hpp>

using namespace frugal;

auto good = Profile<Steps<1>>{};
#ifdef FRUGAL_REJECT
auto bad = Profile<Steps<0>>{};
#endif
