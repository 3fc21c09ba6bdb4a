// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune raises its sparsity between steps. Write Every<50>.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<Magnitude, Sparsity<0.5>, Cubic<10>, Every<5>> good;
#ifdef FRUGAL_REJECT
Prune<Magnitude, Sparsity<0.5>, Cubic<10>, Every<1, Epoch>> bad;
#endif
