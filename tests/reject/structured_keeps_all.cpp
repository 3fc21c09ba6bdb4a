// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Keep<share>: the share that stays is above 0 and below 1. Write Keep<0.75_r>.
#include <frugal/model/structured.hpp>

using namespace frugal;
using namespace frugal::literals;

Keep<0.75_r> good;
#ifdef FRUGAL_REJECT
Keep<1_r> bad;
#endif
