// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Patience<0> would give up before the first validation. Write Patience<1>, or leave the policy out.
#include <frugal/policy/watched.hpp>

using namespace frugal;

auto good = Patience<1>{};
#ifdef FRUGAL_REJECT
auto bad = Patience<0>{};
#endif
