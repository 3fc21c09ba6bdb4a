// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Spot needs Checkpoint: there is nothing to save to. Add Checkpoint<Every<500>>.
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;
#include <frugal/policy/precision.hpp>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/spot.hpp>

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches, batches));
}
template void train<Checkpoint<Every<500>>, EarlyStop<Patience<3>>, Spot<SigtermSave>>();
#ifdef FRUGAL_REJECT
template void train<Precision<BF16>, Accumulate<8>, EarlyStop<Patience<3>>, Spot<SigtermSave>>();
#endif
