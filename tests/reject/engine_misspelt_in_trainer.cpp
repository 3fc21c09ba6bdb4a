// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this policy listens to on::step and its State has no on_step. Write the member, or remove the hook from `listens`.
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct Sound {
  using kind = kinds::progress;
  using listens = list<on::step>;
  struct State {
    explicit State(Sound const&) {}
    void on_step(Step&) {}
  };
};
struct Misspelt {
  using kind = kinds::progress;
  using listens = list<on::step>;
  struct State {
    explicit State(Misspelt const&) {}
    void on_stpe(Step&) {}
  };
};
template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Sound>();
#ifdef FRUGAL_REJECT
template void train<Misspelt>();
#endif
