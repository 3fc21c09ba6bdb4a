// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: AutoBatch sets the micro-batch of Accumulate<Auto>, and this recipe has another Accumulate. Write Accumulate<Auto>.
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/auto_batch.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class Accumulation>
void train() {
  Trainer trainer{torch::nn::Linear(1, 1), MeanSquaredError{}, Settings{},
                  Optimize<SGD>{},         Accumulation{},     AutoBatch{}};
  static_cast<void>(trainer.fit(std::vector<Batch>{}));
}

template void train<Accumulate<Auto>>();
#ifdef FRUGAL_REJECT
template void train<Accumulate<4>>();
#endif
