// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Temperature<T>: T must be above 0. Write Temperature<4>.
#include <frugal/model/distill.hpp>

using namespace frugal;

static_assert(Temperature<2.5>::value == 2.5);
#ifdef FRUGAL_REJECT
static_assert(Temperature<0>::value == 0);
#endif
