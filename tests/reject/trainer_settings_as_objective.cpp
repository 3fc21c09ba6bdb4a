// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a Trainer's second argument is the objective, and this one is Settings. Write `Trainer trainer{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}}`.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class Objective>
void make() {
  Trainer trainer{torch::nn::Linear(2, 2), Objective{}, Optimize<SGD>{}};
}
template void make<CrossEntropy>();
#ifdef FRUGAL_REJECT
template void make<Settings>();
#endif
