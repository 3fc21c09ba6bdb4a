// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune<Rule, ...>: unknown option. Options: Sparsity<0.9>, From<N>, Cubic<N>, a cadence such as Every<50>, Global, Where<"pattern">.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<Magnitude, Sparsity<0.5>, Global> good;
#ifdef FRUGAL_REJECT
Prune<Magnitude, Sparsity<0.5>, int> bad;
#endif
