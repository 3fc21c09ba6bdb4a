// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this recipe has two policies of one kind, and a recipe takes one.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
using Job = Trainer<torch::nn::Linear, CrossEntropy, Ps...>;

static_assert(sizeof(Job<Optimize<AdamW>>) != 0);
static_assert(!Recipe<Optimize<AdamW>, Optimize<SGD>>::legal);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Job<Optimize<AdamW>, Optimize<SGD>>) != 0);
#endif
