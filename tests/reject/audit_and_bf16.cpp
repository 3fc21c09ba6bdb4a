// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Audit<BitExact> is for runs in FP32: products in 16 bits depend on the machine. Take Precision or the audit out.
#include <frugal/policy/audit.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  trainer.fit(batches);
}
template void train<Audit<BitExact>, Precision<FP32>>();
#ifdef FRUGAL_REJECT
template void train<Audit<BitExact>, Precision<BF16>>();
#endif
