// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this policy declares a property as a bool member, which nobody reads. Write `using properties = frugal::list<frugal::property::capturable>;`, with the property's name; frugal::property::all lists them.
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

struct WatchesKind : optional_kind {
  static constexpr std::string_view name = "Watches";
};
struct WatchesState {
  explicit WatchesState(auto const&) {}
  void on_step(Step&) {}
};
struct Declares {
  using kind = WatchesKind;
  using listens = list<on::step>;
  using properties = list<property::knows_ranks>;
  using State = WatchesState;
};
struct HasBool {
  using kind = WatchesKind;
  using listens = list<on::step>;
  static constexpr bool knows_ranks = true;
  using State = WatchesState;
};
template <class Policy>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, MeanSquaredError, Optimize<SGD>, Policy> trainer{
      torch::nn::Linear(1, 1)};
  static_cast<void>(trainer.fit(batches));
}
template void train<Declares>();
#ifdef FRUGAL_REJECT
template void train<HasBool>();
#endif
