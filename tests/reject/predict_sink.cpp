// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: predict's sink cannot be called with (output, batch). Write `[](at::Tensor const& output, auto const& batch) { ... }`.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

struct Good {
  void operator()(at::Tensor const&, Batch const&) const {}
};
struct OutputAlone {
  void operator()(at::Tensor const&) const {}
};
template <class Sink>
void predict() {
  Trainer trainer{torch::nn::Linear(2, 2), CrossEntropy{}, Optimize<SGD>{}};
  trainer.predict(std::vector<Batch>{}, Sink{});
}
template void predict<Good>();
#ifdef FRUGAL_REJECT
template void predict<OutputAlone>();
#endif
