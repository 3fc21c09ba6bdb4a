// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: DividedWindows is the strategy of a policy that provides service::share. Write `using strategy = SummedWindows;` in this one (cluster/summed_windows.hpp).
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
template void train<Together<ReducesAlone, SummedWindows>>();
#ifdef FRUGAL_REJECT
template void train<Together<ReducesAlone, DividedWindows>>();
#endif
