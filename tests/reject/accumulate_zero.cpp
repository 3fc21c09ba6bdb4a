// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Accumulate counts micro-batches per optimizer step, and there is at least one. Write Accumulate<1> or leave it out.
#include <frugal/policy/accumulate.hpp>

using namespace frugal;

auto good = Accumulate<1>{};
#ifdef FRUGAL_REJECT
auto bad = Accumulate<0>{};
#endif
