// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: NofM<N, M> keeps N of each M weights: N is at least 1 and less than M. Write NofM<2, 4>.
#include <frugal/model/prune.hpp>

using namespace frugal;

NofM<1, 2> good;
#ifdef FRUGAL_REJECT
NofM<4, 4> bad;
#endif
