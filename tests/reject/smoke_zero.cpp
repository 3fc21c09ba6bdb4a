// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Smoke rehearses at least one batch. Write Smoke<2> or leave it out.
#include <frugal/policy/smoke.hpp>

using namespace frugal;

auto good = Smoke<1>{};
#ifdef FRUGAL_REJECT
auto bad = Smoke<0>{};
#endif
