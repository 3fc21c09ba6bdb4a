// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Schedule<...>: more than one Plateau. Keep one.
#include <frugal/policy/schedule.hpp>

using namespace frugal;

Schedule<Warmup<5>, Plateau<0.5>> good;
#ifdef FRUGAL_REJECT
Schedule<Plateau<0.5>, Plateau<0.1>> bad;
#endif
