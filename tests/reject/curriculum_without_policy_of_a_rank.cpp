// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this training source gives the easy samples first, and the recipe does not say so. Add the policy it was made with, as in Curriculum<By<Length>, LinearPace<5>>{}.
#include <frugal/data/sampling/order.hpp>
#include <frugal/policy/curriculum.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <utility>

using namespace frugal;

struct Rows {
  std::uint64_t size() const { return 4; }
  std::pair<at::Tensor, at::Tensor> get(std::uint64_t) const { return {}; }
};

using Job = Trainer<torch::nn::Linear, MeanSquaredError, Optimize<AdamW>>;
void good(Job& job, Loader<Rows, Stack, Shared<Pass>>& rows) { job.fit(rows); }
#ifdef FRUGAL_REJECT
void bad(Job& job, Loader<Rows, Stack, Shared<CurriculumPass<LinearPace<5>>>>& rows) {
  job.fit(rows);
}
#endif
