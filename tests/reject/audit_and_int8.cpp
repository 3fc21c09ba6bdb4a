// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Audit<BitExact> needs FP32: products in fewer bits depend on the machine. Remove Precision or Audit.
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
template void train<Audit<BitExact>, Precision<FP32>>();
#ifdef FRUGAL_REJECT
template void train<Audit<BitExact>, Precision<INT8>>();
#endif
