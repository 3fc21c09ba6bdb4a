// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune<Rule, ...>: the rule is Magnitude, Movement or NofM<N, M>. Write Prune<Magnitude, Sparsity<0.9>>.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<Magnitude, Sparsity<0.9>> good;
#ifdef FRUGAL_REJECT
Prune<Sparsity<0.5>, Sparsity<0.9>> bad;
#endif
