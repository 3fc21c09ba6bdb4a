// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune begins at a step. Write From<200>.
#include <frugal/model/prune.hpp>

using namespace frugal;

Prune<Magnitude, Sparsity<0.5>, From<5>> good;
#ifdef FRUGAL_REJECT
Prune<Magnitude, Sparsity<0.5>, From<5, Epoch>> bad;
#endif
