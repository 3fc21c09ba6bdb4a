// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this source is const, and reading it moves its position. Remove the const of its variable or parameter.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void good(Job& trainer, TensorDataset& rows) { trainer.fit(rows); }
#ifdef FRUGAL_REJECT
void bad(Job& trainer, TensorDataset const& rows) { trainer.fit(rows); }
#endif
