// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a number is not a source of batches. The length of a run is in the trainer's settings: Settings{.epochs = 10}, or Settings{.steps = 1000}.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void good(Job& trainer, TensorDataset& rows) { trainer.fit(rows); }
#ifdef FRUGAL_REJECT
void bad(Job& trainer, TensorDataset& rows) { trainer.fit(rows, 10); }
#endif
