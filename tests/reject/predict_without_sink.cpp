// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: predict gives each output to a function. Write `predict(source, [&](at::Tensor const& output, auto const& batch) { ... })`.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

template <class... Sink>
void predict(Sink... sink) {
  Trainer trainer{torch::nn::Linear(2, 2), CrossEntropy{}, Optimize<SGD>{}};
  trainer.predict(std::vector<Batch>{}, sink...);
}
struct Good {
  void operator()(at::Tensor const&, Batch const&) const {}
};
template void predict(Good);
#ifdef FRUGAL_REJECT
template void predict();
#endif
