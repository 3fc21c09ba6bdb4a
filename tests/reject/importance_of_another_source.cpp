// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Importance: the training source does not draw by importance. Make it with the policy, as in `auto train = importance.source(set, {.batch = 32})`.
#include <frugal/policy/curriculum.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/importance.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <utility>

using namespace frugal;

struct Rows {
  std::uint64_t size() const { return 4; }
  std::pair<at::Tensor, at::Tensor> get(std::uint64_t) const { return {}; }
};
struct Size {
  double operator()(std::pair<at::Tensor, at::Tensor> const&) const { return 0; }
};
using EasyFirst = Curriculum<By<Size>, LinearPace<5>>;

using ByLoss = Importance<By<Loss>>;
using Job =
    Trainer<torch::nn::Linear, ImportanceObjective<MeanSquaredError>, Optimize<AdamW>, ByLoss>;
void good(Job& job, decltype(ByLoss{}.source(Rows{}, {}))& rows) { job.fit(rows); }
#ifdef FRUGAL_REJECT
void bad(Job& job, decltype(loader(Rows{}))& rows) { job.fit(rows); }
#endif
