// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this policy provides service::share, whose processes divide windows. Write `using strategy = DividedWindows;` in it (cluster/divided_windows.hpp).
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

#include "../support/together.hpp"

using namespace frugal;
using namespace frugal_test::support;

template <class Policy>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, MeanSquaredError, Optimize<SGD>, Policy> trainer{
      torch::nn::Linear(1, 1)};
  static_cast<void>(trainer.fit(batches));
}
template void train<Together<Shares, DividedWindows>>();
#ifdef FRUGAL_REJECT
template void train<Together<Shares, SummedWindows>>();
#endif
