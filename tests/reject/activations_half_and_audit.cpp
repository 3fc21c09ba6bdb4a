// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Activations<BF16> and Activations<FP16> round the values from which gradients are computed, which Audit<BitExact> rules out. Remove Activations or Audit, or use Recompute<>, which rounds nothing.
#include <frugal/policy/activations.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct OwnAudit {
  using kind = kinds::audit;
  using listens = list<on::fit_end>;
  struct State {
    explicit State(OwnAudit const&) {}
    void on_fit_end(FitEnd&) {}
  };
};

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<OwnAudit, Activations<Offload>>();
#ifdef FRUGAL_REJECT
template void train<OwnAudit, Activations<BF16>>();
#endif
