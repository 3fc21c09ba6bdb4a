// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: a search cannot see what make() takes. Write the type of its argument: [](Shape const& shape) { return Net(shape); }.
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
inline auto any = [](auto const& shape) { return torch::nn::Linear(shape.width, 1); };
using Bad = SearchJob<decltype(any), int, TensorDataset, TensorDataset>::architecture;
#endif
