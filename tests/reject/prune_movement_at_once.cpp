// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Movement prunes by what the steps have done, and at the beginning there are none. Add Cubic<1000>, or From<1000>.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<Movement, Sparsity<0.5>, Cubic<10>> good;
#ifdef FRUGAL_REJECT
Prune<Movement, Sparsity<0.5>> bad;
#endif
