// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: WeightsIn<...> rounds the saved weights, which Audit<BitExact> rules out. Remove WeightsIn or Audit.
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/audit.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Audit<BitExact>, Checkpoint<Every<500>>>();
#ifdef FRUGAL_REJECT
template void train<Audit<BitExact>, Checkpoint<Every<500>, WeightsIn<BF16>>>();
#endif
