// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Rank<0> adapts nothing. Write Rank<8>.
#include <frugal/model/lora.hpp>

using namespace frugal;

Rank<1> good;
#ifdef FRUGAL_REJECT
Rank<0> bad;
#endif
