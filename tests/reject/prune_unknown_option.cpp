// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune<Rule, ...>: unknown option. Options: Sparsity<0.9_r>, From<N>, Cubic<N>, a cadence such as Every<50>, Global, Where<"pattern">.
#include <frugal/model/prune.hpp>

using namespace frugal;
using namespace frugal::literals;

Prune<Magnitude, Sparsity<0.5_r>, Global> good;
#ifdef FRUGAL_REJECT
Prune<Magnitude, Sparsity<0.5_r>, int> bad;
#endif
