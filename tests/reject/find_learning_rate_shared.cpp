// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: find_learning_rate trains in one process, and a policy of this recipe (Replicate) divides its windows among several. Search in a recipe without it.
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/core.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/find_learning_rate.hpp>

#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

using namespace frugal;

struct Shares {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Shares";
  };
  using listens = list<>;
  using provides = list<frugal::service::reduce, frugal::service::share>;
  using strategy = DividedWindows;
  MicroBatches own(int micro_batches) const {
    return {.first = 0, .count = static_cast<std::uint64_t>(micro_batches)};
  }
  struct State {
    explicit State(Shares const&) {}
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
struct Mean {
  at::Tensor operator()(torch::nn::Linear& module, Batch const& batch) const {
    return module->forward(batch.data).mean();
  }
};
template <class... Policies>
void search() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, Mean, Optimize<SGD>, Policies...> trainer{torch::nn::Linear(1, 1)};
  static_cast<void>(find_learning_rate(trainer, batches));
}
template void search<>();
#ifdef FRUGAL_REJECT
template void search<Shares>();
#endif
