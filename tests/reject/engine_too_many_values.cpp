// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the trainer is given more values of a policy type than its recipe has policies of that type. Remove the extra values.
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

int main() {
  using S = Optimize<SGD>;
  Trainer<torch::nn::Linear, CrossEntropy, S> sound(torch::nn::Linear(2, 2), {}, Settings{}, S{});
#ifdef FRUGAL_REJECT
  Trainer<torch::nn::Linear, CrossEntropy, S> unsound(torch::nn::Linear(2, 2), {}, Settings{}, S{},
                                                      S{});
#endif
}
