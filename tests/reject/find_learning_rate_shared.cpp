// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: find_learning_rate trains in one process, and a policy of this recipe (Replicate) divides its windows among several. Search in a recipe without it.
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/find_learning_rate.hpp>

#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "../support/together.hpp"

using namespace frugal;

using Shares = frugal_test::support::Together<frugal_test::support::Shares, DividedWindows>;
struct Mean {
  at::Tensor operator()(torch::nn::Linear& module, Batch const& batch) const {
    return module->forward(batch.data).mean();
  }
};
template <class... Policies>
void search() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, Mean, Optimize<SGD>, Policies...> trainer{torch::nn::Linear(1, 1)};
  static_cast<void>(find_learning_rate(trainer, batches));
}
template void search<>();
#ifdef FRUGAL_REJECT
template void search<Shares>();
#endif
