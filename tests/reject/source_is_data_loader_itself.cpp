// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a torch::data DataLoader cannot seek, so no run over it could resume.
#include <frugal/data/dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/data/dataloader.h>
#include <torch/data/datasets/tensor.h>
#include <torch/nn/modules/linear.h>

using namespace frugal;

using Rows = torch::data::datasets::TensorDataset;
auto loader_of(Rows dataset) {
  return torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(dataset),
                                                                                 /*batch_size=*/64);
}
using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void good(Job& trainer, std::vector<Batch>& batches) {
  static_cast<void>(trainer.evaluate(batches));
}
#ifdef FRUGAL_REJECT
void bad(Job& trainer, Rows& dataset) {
  auto loader = loader_of(dataset);
  static_cast<void>(trainer.evaluate(*loader));
}
#endif
