// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Lora fixes the weights that Prune would mask. Prune in a run without Lora, or name what AlsoTrain trains: Prune<..., Where<"head.*">>.
#include <frugal/model/lora.hpp>
#include <frugal/model/prune.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Lora<Rank<2>, On<"q">>, Ps...> trainer(
      torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Prune<Magnitude, Sparsity<0.5>, Where<"head.*">>>();
#ifdef FRUGAL_REJECT
template void train<Prune<Magnitude, Sparsity<0.5>>>();
#endif
