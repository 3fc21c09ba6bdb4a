// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: make() changes the architecture that it takes. Write [](Shape const& shape) { return Net(shape); }.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/search/job.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct Shape {
  int width = 1;
};
inline auto make = [](Shape const& shape) { return torch::nn::Linear(shape.width, 1); };
using Good = SearchJob<decltype(make), int, TensorDataset, TensorDataset>::architecture;
#ifdef FRUGAL_REJECT
inline auto changes = [](Shape& shape) { return torch::nn::Linear(++shape.width, 1); };
using Bad = SearchJob<decltype(changes), int, TensorDataset, TensorDataset>::architecture;
#endif
