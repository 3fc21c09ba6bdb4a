// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Plateau<factor, ...>: unknown option. Options: Patience<validations>, and a watched metric such as WatchLoss or WatchAccuracy.
#include <frugal/policy/schedule.hpp>

using namespace frugal;

Schedule<Plateau<0.5, WatchAccuracy, Patience<2>>> good;
#ifdef FRUGAL_REJECT
Schedule<Plateau<0.5, Every<500>>> bad;
#endif
