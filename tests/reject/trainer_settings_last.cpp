// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Settings comes before the policies. Write Trainer{module, objective, Settings{...}, policies...}.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void make() {
  Trainer good{torch::nn::Linear(2, 2), CrossEntropy{}, Optimize<AdamW>{.lr = 1.0}};
#ifdef FRUGAL_REJECT
  Trainer bad{torch::nn::Linear(2, 2), CrossEntropy{}, Optimize<AdamW>{.lr = 1.0}, Settings{}};
#endif
}
