// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Accumulate<N> takes one number, the micro-batches per optimizer step. Write Accumulate<8>.
#include <frugal/policy/accumulate.hpp>

using namespace frugal;

Accumulate<2> one;
Accumulate<> later{.micro_batches = 2};
#ifdef FRUGAL_REJECT
Accumulate<2, 3> bad;
#endif
