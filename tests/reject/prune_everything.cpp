// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Sparsity<share>: the share of pruned weights is above 0 and below 1. Write Sparsity<0.9>.
#include <frugal/model/prune.hpp>

using namespace frugal;

Sparsity<0.5> good;
#ifdef FRUGAL_REJECT
Sparsity<1> bad;
#endif
