// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: PowerSGD<R> sends factors of R columns, so R is at least 1. Write PowerSGD<4>.
#include <frugal/cluster/power_sgd.hpp>

static_assert(frugal::Wire<frugal::PowerSGD<4>>::rank == 4);
#ifdef FRUGAL_REJECT
static_assert(frugal::Wire<frugal::PowerSGD<0>>::rank == 0);
#endif
