// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a torch::data DataLoader cannot seek, so no run over it could resume. Give its dataset: fit(from_dataset(dataset, {.batch = 64})).
#include <frugal/data/dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/data/dataloader.h>
#include <torch/data/datasets/tensor.h>
#include <torch/nn/modules/linear.h>

using namespace frugal;

using Rows = torch::data::datasets::TensorDataset;
auto loader_of(Rows dataset) {
  return torch::data::make_data_loader(std::move(dataset), /*batch_size=*/64);
}
using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void good(Job& trainer, std::vector<Batch>& batches) { trainer.fit(batches, batches); }
#ifdef FRUGAL_REJECT
void bad(Job& trainer, Rows& dataset) { trainer.fit(loader_of(dataset)); }
#endif
