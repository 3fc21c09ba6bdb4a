// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Plateau watches validation, and fit(train) has no validation data. Call fit(train, valid).
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Net = torch::nn::Linear;
std::vector<Batch> batches;

void good(Trainer<Net, CrossEntropy, Optimize<AdamW>, Schedule<Plateau<>>>& trainer) {
  static_cast<void>(trainer.fit(batches, batches));
}
#ifdef FRUGAL_REJECT
void bad(Trainer<Net, CrossEntropy, Optimize<AdamW>, Schedule<Plateau<>>>& trainer) {
  static_cast<void>(trainer.fit(batches));
}
#endif
