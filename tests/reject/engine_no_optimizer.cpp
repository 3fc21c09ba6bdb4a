// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this recipe has no optimizer and would train nothing. Add Optimize<AdamW>, or Optimize<Nothing> if that is what you mean.
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Optimize<Nothing>>();
#ifdef FRUGAL_REJECT
template void train<>();
#endif
