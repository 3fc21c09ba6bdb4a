// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this policy provides service::share, whose processes divide windows. Write `using strategy = DividedWindows;` in it (cluster/divided_windows.hpp).
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

#include <string>
#include <utility>
#include <vector>

using namespace frugal;

template <class Provided, class Strategy>
struct Together {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Together";
  };
  using listens = list<on::fit_begin>;
  using provides = Provided;
  using strategy = Strategy;
  MicroBatches own(int) const { return {}; }
  struct State {
    using transient = void;
    explicit State(Together const&) {}
    void on_fit_begin(FitBegin&) {}
    double reduce(Quantity, double value) { return value; }
    at::Tensor reduce(Quantity, at::Tensor value) { return value; }
    void join(SharedWindow&) {}
    bool is_first() const { return true; }
    std::string from_first(std::string const& text) { return text; }
    std::string first_of(std::string const& text) { return text; }
    std::vector<at::Tensor> norms(Parameters const&) { return {}; }
    void collect_parts() {}
    Processes processes() const { return {}; }
  };
};
using Shared = list<service::reduce, service::share>;
using Summed = list<service::reduce>;

template <class Policy>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, MeanSquaredError, Optimize<SGD>, Policy> trainer{
      torch::nn::Linear(1, 1)};
  static_cast<void>(trainer.fit(batches));
}
template void train<Together<Shared, DividedWindows>>();
#ifdef FRUGAL_REJECT
template void train<Together<Shared, SummedWindows>>();
#endif
