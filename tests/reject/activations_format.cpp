// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: activations are kept in 16 bits or by Offload. Write Activations<BF16>, Activations<FP16> or Activations<Offload>.
#include <frugal/policy/activations.hpp>
#include <frugal/policy/precision.hpp>

using namespace frugal;

Activations<BF16> good;
#ifdef FRUGAL_REJECT
Activations<FP32> bad;
#endif
