// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this trainer's recipe has no clip. Add ClipNorm<1.0> to it, or remove the call.
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void look() {
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> const trainer(
      torch::nn::Linear(2, 2));
  trainer.clip();
}
template void look<ClipNorm<>>();
#ifdef FRUGAL_REJECT
template void look<>();
#endif
