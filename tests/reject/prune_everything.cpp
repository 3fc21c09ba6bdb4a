// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Sparsity<share>: the share of pruned weights is above 0 and below 1. Write Sparsity<0.9_r>.
#include <frugal/model/prune.hpp>

using namespace frugal;
using namespace frugal::literals;

Sparsity<0.5_r> good;
#ifdef FRUGAL_REJECT
Sparsity<1_r> bad;
#endif
