// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: NofM<N, M> keeps N of each M weights, and takes no Sparsity, Cubic or Global. Remove them.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<NofM<2, 4>, From<5>> good;
#ifdef FRUGAL_REJECT
Prune<NofM<2, 4>, Sparsity<0.5>> bad;
#endif
