// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Keep<0> would keep no checkpoint. Write Keep<1> or more.
#include <frugal/policy/checkpoint/options.hpp>

using namespace frugal;

auto good = Keep<1>{};
#ifdef FRUGAL_REJECT
auto bad = Keep<0>{};
#endif
