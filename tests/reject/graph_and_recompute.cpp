// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph<WholeStep> captures the hooks within a step, and a policy of this recipe has such a hook without declaring it capturable. The compiler's note names the policy. Remove it or CudaGraph<WholeStep>, or write `using properties = frugal::list<frugal::property::capturable>;` in it if these hooks call tensor operators only.
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
using Job = Trainer<torch::nn::Linear, CrossEntropy, Optimize<AdamW>, Ps...>;

static_assert(sizeof(Job<CudaGraph<WholeStep>>) != 0);
static_assert(sizeof(Job<Recompute<>, Eager>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Job<CudaGraph<WholeStep>, Recompute<>>) != 0);
#endif
