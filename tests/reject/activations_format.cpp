// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: activations are kept as Half or by Offload. Write Activations<Half> or Activations<Offload>.
#include <frugal/policy/activations.hpp>
#include <frugal/policy/precision.hpp>

using namespace frugal;

Activations<Half> good;
#ifdef FRUGAL_REJECT
Activations<BF16> bad;
#endif
