// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Recompute is told by segments or by modules what it computes again. Write Recompute<Segments<4>>, Recompute<Segments<Auto>> or Recompute<Where<OfType<Block>>>.
#include <frugal/policy/recompute.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

Recompute<Where<OfType<torch::nn::Linear>>> good;
#ifdef FRUGAL_REJECT
Recompute<torch::nn::Linear> bad;
#endif
