// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: HalfStorage rounds the weights, and a bit-exact audit would find it. Take HalfStorage or the audit out.
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct OwnAudit {
  using kind = kinds::audit;
  using listens = list<on::fit_end>;
  template <class Context>
  struct State {
    explicit State(OwnAudit const&) {}
    void on_fit_end(FitEnd<Context>&) {}
  };
};

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  trainer.fit(batches);
}
template void train<OwnAudit, Checkpoint<Every<500>>>();
#ifdef FRUGAL_REJECT
template void train<OwnAudit, Checkpoint<Every<500>, HalfStorage>>();
#endif
