// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: KeepShare<share>: the share that stays is above 0 and below 1. Write KeepShare<0.75>.
#include <frugal/model/structured.hpp>

using namespace frugal;

KeepShare<0.75> good;
#ifdef FRUGAL_REJECT
KeepShare<1> bad;
#endif
