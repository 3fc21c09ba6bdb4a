// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Warmup<0> has no step. Write Warmup<1>, or leave it out.
#include <frugal/policy/schedule.hpp>

using namespace frugal;

auto good = Warmup<1>{};
#ifdef FRUGAL_REJECT
auto bad = Warmup<0>{};
#endif
