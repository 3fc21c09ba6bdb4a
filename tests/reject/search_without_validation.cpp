// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: a search compares its trials by validation data, which come after the training data. Write SearchJob{make, objective, train, valid, policies...}.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/search/job.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct Policy {
  struct kind {};
};
struct Shape {
  int width = 1;
};
inline auto make = [](Shape const& shape) { return torch::nn::Linear(shape.width, 1); };
inline void use(TensorDataset& data) {
  static_cast<void>(SearchJob{make, 0, data, data, 1.5});
#ifdef FRUGAL_REJECT
  Policy policy;
  static_cast<void>(SearchJob{make, 0, data, policy});
#endif
}
