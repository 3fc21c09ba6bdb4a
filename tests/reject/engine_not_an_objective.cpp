// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the objective cannot be called with (module, batch), or returns neither at::Tensor nor frugal::Loss. Write one of frugal's, such as CrossEntropy{}, or [](Net& net, Batch const& batch) { return loss; }.
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct Sound {
  at::Tensor operator()(torch::nn::Linear& module, Batch const& batch) const {
    return module->forward(batch.data).mean();
  }
};
struct ReturnsNumber {
  double operator()(torch::nn::Linear&, Batch const&) const { return 1.0; }
};
template <class Objective>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, Objective, Optimize<SGD>> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Sound>();
#ifdef FRUGAL_REJECT
template void train<ReturnsNumber>();
#endif
