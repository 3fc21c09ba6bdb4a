// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Plateau watches a metric that this recipe does not measure; the compiler's note names it. Add the metric to Validate, as in Validate<Accuracy>, or watch the loss with WatchLoss.
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>, Ps...>;

void good(Job<Schedule<Plateau<0.1, WatchAccuracy>>, Validate<Accuracy>>& trainer) {
  trainer.module();
}
#ifdef FRUGAL_REJECT
void bad(Job<Schedule<Plateau<0.1, WatchAccuracy>>>& trainer) { trainer.module(); }
#endif
