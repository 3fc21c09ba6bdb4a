// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Activations<...>: unknown format. Options: BF16, FP16, Offload.
#include <frugal/policy/activations.hpp>
#include <frugal/policy/precision.hpp>

using namespace frugal;

Activations<BF16> good;
#ifdef FRUGAL_REJECT
Activations<FP32> bad;
#endif
