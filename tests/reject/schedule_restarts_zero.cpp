// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CosineRestarts<first, growth>: the first period is 1 step or more, the growth is 1 or more. Write CosineRestarts<1000, 2>.
#include <frugal/policy/schedule.hpp>

using namespace frugal;

auto good = CosineRestarts<1, 1>{};
#ifdef FRUGAL_REJECT
auto bad = CosineRestarts<0, 1>{};
#endif
