// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Curriculum draws from the easy samples alone in its first epochs, and EarlyStop watches them: it would judge a run that has not seen its data. Give EarlyStop a grace period that covers the pace, as in EarlyStop<Patience<3>, GraceEpochs<5>> with LinearPace<5>.
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

using Long = EarlyStop<Patience<3>, GraceEpochs<5>>;
using Short = EarlyStop<Patience<3>, GraceEpochs<4>>;
Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>, Validate<Every<1, Epoch>>, Long,
        EasyFirst>* good;
#ifdef FRUGAL_REJECT
void bad(torch::nn::Linear& net) {
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>, Validate<Every<1, Epoch>>, Short,
          EasyFirst>
      trainer(net);
}
#endif
