// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this Schedule has no part of that name. Name one that it has, such as warmup().
#include <frugal/policy/schedule.hpp>

using namespace frugal;

Schedule<Warmup<5>, Cosine> schedule;
auto const steps = schedule.warmup().steps;
#ifdef FRUGAL_REJECT
auto const bad = schedule.plateau().patience;
#endif
