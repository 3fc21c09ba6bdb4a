// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a line search evaluates a window as often as its own process needs, so the processes of this recipe (service::reduce) would wait for each other. Use Optimize<AdamW> or another optimizer that evaluates a window once.
#include <frugal/cluster/summed_windows.hpp>
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

struct Agrees {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Agrees";
  };
  using listens = list<>;
  using provides = list<frugal::service::reduce>;
  using strategy = frugal::SummedWindows;
  struct State {
    explicit State(Agrees const&) {}
    double reduce(Quantity, double value) { return value; }
    at::Tensor reduce(Quantity, at::Tensor value) { return value; }
  };
};
struct Mean {
  at::Tensor operator()(torch::nn::Linear& module, Batch const& batch) const {
    return module->forward(batch.data).mean();
  }
};
template <class Optimizer>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, Mean, Optimizer, Agrees> trainer{torch::nn::Linear(1, 1)};
  static_cast<void>(trainer.fit(batches));
}
template void train<Optimize<SGD>>();
#ifdef FRUGAL_REJECT
template void train<Optimize<Any>>();
#endif
