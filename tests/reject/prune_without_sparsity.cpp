// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune needs the share of weights to prune. Write Sparsity<0.9>.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<NofM<2, 4>> good;
#ifdef FRUGAL_REJECT
Prune<Magnitude> bad;
#endif
