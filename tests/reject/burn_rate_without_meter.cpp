// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: BurnRate needs CostMeter: nobody counts what is spent. Add CostMeter{}.
#include <frugal/policy/optimize.hpp>
#include <frugal/report/burn_rate.hpp>
#include <frugal/report/cost_meter.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<CostMeter, BurnRate<Usd<3>, PerHour>>();
#ifdef FRUGAL_REJECT
template void train<BurnRate<Usd<3>, PerHour>>();
#endif
