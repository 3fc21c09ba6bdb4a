// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Prune changes its masks during this run, and an average keeps a share of weights from before they were pruned: it would not be sparse. Prune when the run begins, without From, Cubic and Movement, or remove Average.
#include <frugal/model/prune.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Average<>, Prune<Magnitude, Sparsity<0.5>>>();
#ifdef FRUGAL_REJECT
template void train<Average<>, Prune<Magnitude, Sparsity<0.5>, Cubic<10>>>();
#endif
