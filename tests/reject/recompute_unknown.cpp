// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Recompute<...>: unknown option. Options: Segments<N>, Segments<Auto>, Modules<OfType<Block>>.
#include <frugal/policy/recompute.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

Recompute<Modules<OfType<torch::nn::Linear>>> good;
#ifdef FRUGAL_REJECT
Recompute<torch::nn::Linear> bad;
#endif
