// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this type is not a source of batches. Give a Source, with seek(cursor) and next(); a range of batches, such as std::vector<Batch>; tensors as TensorDataset(data, target); or from_dataset(dataset).
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>>;

struct Rows {
  at::Tensor data, target;
};
void good(Job& trainer, TensorDataset& rows) { trainer.fit(rows); }
#ifdef FRUGAL_REJECT
void bad(Job& trainer, Rows& rows) { trainer.fit(rows); }
#endif
