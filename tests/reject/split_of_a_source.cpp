// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: split divides a set of samples (size() and a const get(i)), a std::vector of samples, or a batch of tensors. It cannot divide a source, such as TensorDataset: split the tensors, and make a source of each part.
#include <frugal/data/split.hpp>
#include <frugal/data/tensor_dataset.hpp>

using namespace frugal;

void good(Batch const& set) {
  auto const [train_rows, valid_rows] = split(set, {0.9, 0.1});
  TensorDataset const train(train_rows), valid(valid_rows);
}
#ifdef FRUGAL_REJECT
void bad(TensorDataset const& set) { split(set, {0.9, 0.1}); }
#endif
