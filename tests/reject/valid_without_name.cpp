// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: only the first validation source may lack a name; the metrics of the others would have the same names. Write named<"shifted">(source).
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
  static_cast<void>(trainer.fit(batches, batches, batches));
}
#endif
