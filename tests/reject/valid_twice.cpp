// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: two validation sources have one name, and their metrics could not be told apart. Give each a name of its own.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

using Net = torch::nn::Linear;
std::vector<Batch> batches;

void good(Trainer<Net, CrossEntropy, Optimize<AdamW>>& trainer) {
  static_cast<void>(trainer.fit(batches, batches, named<"shifted">(batches)));
}
#ifdef FRUGAL_REJECT
void bad(Trainer<Net, CrossEntropy, Optimize<AdamW>>& trainer) {
  static_cast<void>(trainer.fit(batches, named<"shifted">(batches), named<"shifted">(batches)));
}
#endif
