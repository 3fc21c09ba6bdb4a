// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a pointer is not a source of batches. Give the source itself: fit(*source).
// expect: frugal: a module is not a source of batches, and the trainer has its module. Write Trainer{module, ...}, and fit(train) or fit(train, valid).
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

void good(Job& trainer, TensorDataset& rows) { trainer.fit(rows); }
#ifdef FRUGAL_REJECT
void bad(Job& trainer, TensorDataset& rows) { trainer.fit(&rows); }
void as_in_lightning(Job& trainer, torch::nn::Linear& net, TensorDataset& rows) {
  trainer.fit(net, rows);
}
#endif
