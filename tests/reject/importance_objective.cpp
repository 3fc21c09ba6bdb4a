// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the objective cannot be called with (module, batch), or returns neither at::Tensor nor frugal::Loss. Write one of frugal's, such as CrossEntropy{}, or [](Net& net, Batch const& batch) { return loss; }.
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
template <class Objective>
using Job = Trainer<torch::nn::Linear, Objective, Optimize<AdamW>, ByLoss>;
void good(Job<ImportanceObjective<MeanSquaredError>>& job,
          decltype(ByLoss{}.source(Rows{}, {}))& rows) {
  job.fit(rows);
}
#ifdef FRUGAL_REJECT
void bad(Job<MeanSquaredError>& job, decltype(ByLoss{}.source(Rows{}, {}))& rows) { job.fit(rows); }
#endif
