// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: EarlyStop watches a metric that this recipe does not measure; the compiler's note names it. Add the metric to Validate, as in Validate<Accuracy>, or watch the loss with WatchLoss.
// expect: accuracy
#include <frugal/policy/average.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/throughput.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>, Ps...>;

void good(Job<EarlyStop<WatchAccuracy>, Validate<Accuracy>>& trainer) { trainer.module(); }
#ifdef FRUGAL_REJECT
// These three surround validations, and add no metric.
void bad(
    Job<EarlyStop<WatchAccuracy>, Average<>, Throughput<>, Validate<Every<1, Epoch>>>& trainer) {
  trainer.module();
}
#endif
