// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this policy value is not in the trainer's recipe. Name its type in the Trainer, or let the types be deduced from the values.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void make() {
  Job good(torch::nn::Linear(2, 2), CrossEntropy{}, Settings{}, Optimize<AdamW>{.lr = 1.0});
#ifdef FRUGAL_REJECT
  Job bad(torch::nn::Linear(2, 2), CrossEntropy{}, Settings{}, Optimize<SGD>{.lr = 1.0});
#endif
}
