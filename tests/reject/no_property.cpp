// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: `properties` of this policy, or of its kind, has a type that is not a property, or is no list. frugal::property::all lists them: `using properties = frugal::list<frugal::property::capturable>;`.
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

template <class Declared>
struct Watches {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Watches";
  };
  using listens = list<on::step>;
  using properties = Declared;
  struct State {
    explicit State(Watches const&) {}
    void on_step(Step&) {}
  };
};
template <class Declared>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, MeanSquaredError, Optimize<SGD>, Watches<Declared>> trainer{
      torch::nn::Linear(1, 1)};
  static_cast<void>(trainer.fit(batches));
}
template void train<list<property::knows_ranks, property::works_on_parts>>();
#ifdef FRUGAL_REJECT
template void train<list<property::knows_ranks, on::step>>();
#endif
