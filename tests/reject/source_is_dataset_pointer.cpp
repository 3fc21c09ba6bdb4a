// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a torch::data dataset is not a source of batches.
#include <frugal/data/dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/data/dataloader.h>
#include <torch/data/datasets/mnist.h>
#include <torch/nn/modules/linear.h>

using namespace frugal;

using Rows = torch::data::datasets::MNIST;
using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void good(Job& trainer, Rows& dataset) {
  auto source = from_dataset(dataset, {.batch = 64});
  static_cast<void>(trainer.fit(source));
}
#ifdef FRUGAL_REJECT
void bad(Job& trainer, std::shared_ptr<Rows>& dataset) { trainer.fit(dataset); }
#endif
