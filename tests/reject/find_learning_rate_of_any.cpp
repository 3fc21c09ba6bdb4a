// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: find_learning_rate sweeps the optimizer's lr, and this one has none. Write Optimize<AdamW>, Adam, SGD or Adagrad.
#include <frugal/policy/optimize.hpp>
#include <frugal/report/find_learning_rate.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class Optimizer>
void sweep() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimizer> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(find_learning_rate(trainer, batches));
}
template void sweep<Optimize<SGD>>();
#ifdef FRUGAL_REJECT
template void sweep<Optimize<Any>>();
#endif
