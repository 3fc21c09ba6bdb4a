// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the module has no forward that takes the data of a batch. Write `at::Tensor forward(at::Tensor x)` in it, or `forward_batch(batch)` if it needs more than the data, or an objective that calls the module itself.
#include <frugal/core/run/objective.hpp>

#include <torch/nn/module.h>

using namespace frugal;

struct OneInput : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return x; }
};
struct TwoInputs : torch::nn::Module {
  at::Tensor forward(at::Tensor x, at::Tensor y) { return x + y; }
};
template <class Module>
void train() {
  Module module;
  CrossEntropy{}(module, Batch{});
}
template void train<OneInput>();
#ifdef FRUGAL_REJECT
template void train<TwoInputs>();
#endif
