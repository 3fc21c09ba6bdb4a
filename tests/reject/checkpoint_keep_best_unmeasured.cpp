// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: KeepBest watches a metric that this recipe does not measure; the compiler's note names it. Add the metric to Validate, as in Validate<Accuracy>, or keep the best by the loss with KeepBest<WatchLoss>.
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>, Ps...>;

void good(Job<Checkpoint<KeepBest<WatchAccuracy>>, Validate<Accuracy>>& trainer) {
  trainer.module();
}
#ifdef FRUGAL_REJECT
void bad(Job<Checkpoint<KeepBest<WatchAccuracy>>>& trainer) { trainer.module(); }
#endif
