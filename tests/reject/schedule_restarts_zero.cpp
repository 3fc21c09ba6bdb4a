// SPDX-License-Identifier: Apache-2.0
// expect: frugal: CosineRestarts counts from 1 step and 1 time.
#include <frugal/policy/schedule/curves.hpp>

using namespace frugal;

auto good = CosineRestarts<1, 1>{};
#ifdef FRUGAL_REJECT
auto bad = CosineRestarts<0, 1>{};
#endif
