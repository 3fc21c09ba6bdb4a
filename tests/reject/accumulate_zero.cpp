// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Accumulate<N>: N is the number of micro-batches per optimizer step, at least 1. Write Accumulate<1>, or leave Accumulate out.
#include <frugal/policy/accumulate.hpp>

using namespace frugal;

auto good = Accumulate<1>{};
#ifdef FRUGAL_REJECT
auto bad = Accumulate<0>{};
#endif
