// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this trainer's recipe has no early_stop. Add EarlyStop<Patience<3>> to it, or remove the call.
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void look() {
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  trainer.early_stop();
}
template void look<EarlyStop<>>();
#ifdef FRUGAL_REJECT
template void look<>();
#endif
