// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: last_loss
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct Reader {
  using kind = kinds::progress;
  using listens = list<on::epoch_begin, on::step>;
  struct State {
    explicit State(Reader const&) {}
    void on_epoch_begin([[maybe_unused]] EpochBegin const& phase) {
#ifdef FRUGAL_REJECT
      phase.last_loss();
#endif
    }
    void on_step(Step& phase) { phase.last_loss(); }
  };
};
template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Reader>();
