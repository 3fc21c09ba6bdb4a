// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: last_loss
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <bool Early>
struct Reader {
  using kind = kinds::progress;
  using listens = list<on::epoch_begin, on::step>;
  template <class Context>
  struct State {
    explicit State(Reader const&) {}
    void on_epoch_begin(EpochBegin<Context> const& phase) {
      if constexpr (Early) phase.last_loss();
    }
    void on_step(Step<Context>& phase) { phase.last_loss(); }
  };
};
template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Reader<false>>();
#ifdef FRUGAL_REJECT
template void train<Reader<true>>();
#endif
