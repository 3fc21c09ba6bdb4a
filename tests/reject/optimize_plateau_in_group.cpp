// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the schedule of a parameter group is a function of the step, and Plateau watches validation. Put Plateau in the recipe's Schedule, which multiplies the rates of all groups.
#include <frugal/policy/optimize/groups.hpp>
#include <frugal/policy/schedule.hpp>

using namespace frugal;

ParameterGroup good() {
  return group_by_pattern("head.*", {.schedule = Schedule<Warmup<5>, Constant<>>{}});
}
#ifdef FRUGAL_REJECT
ParameterGroup bad() {
  return group_by_pattern("head.*", {.schedule = Schedule<Warmup<5>, Plateau<0.5>>{}});
}
#endif
