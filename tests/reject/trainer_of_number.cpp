// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a type in this recipe is not a policy. A policy is a copyable, default-constructible type with `using kind` and `using listens`. Optimizers, curves and metrics are options of one: write Optimize<AdamW>, not AdamW.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class Value>
void make() {
  Trainer trainer{torch::nn::Linear(2, 2), CrossEntropy{}, Settings{}, Value{}};
}
template void make<Optimize<AdamW>>();
#ifdef FRUGAL_REJECT
template void make<double>();
#endif
