// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune<Rule, ...>: the rule is Magnitude, Movement or NofM<N, M>. Write Prune<Magnitude, Sparsity<0.9_r>>.
#include <frugal/model/prune.hpp>

using namespace frugal;
using namespace frugal::literals;

Prune<Magnitude, Sparsity<0.9_r>> good;
#ifdef FRUGAL_REJECT
Prune<Sparsity<0.5_r>, Sparsity<0.9_r>> bad;
#endif
