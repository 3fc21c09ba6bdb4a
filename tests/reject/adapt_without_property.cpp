// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a policy has `adapt(module)` and not property::adapts, so nobody would call it. Write `using properties = frugal::list<frugal::property::adapts>;`.
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

template <class... Properties>
struct Widens {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Widens";
  };
  using listens = list<on::step>;
  using properties = list<Properties...>;
  void adapt(torch::nn::Module&) const {}
  struct State {
    explicit State(Widens const&) {}
    void on_step(Step&) {}
  };
};
template <class Policy>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, MeanSquaredError, Optimize<SGD>, Policy> trainer{
      torch::nn::Linear(1, 1)};
  static_cast<void>(trainer.fit(batches));
}
template void train<Widens<property::adapts>>();
#ifdef FRUGAL_REJECT
template void train<Widens<>>();
#endif
