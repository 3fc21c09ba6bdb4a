// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph<WholeStep> replays a step without the host, and a policy of this recipe waits for the device in every step. The compiler's note names the policy. Remove it (for example, use Optimize<AdamW>, which has a fused kernel, instead of Optimize<Any>), or remove CudaGraph<WholeStep>.
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
using Job = Trainer<torch::nn::Linear, CrossEntropy, Ps...>;

static_assert(sizeof(Job<Optimize<AdamW>, CudaGraph<WholeStep>>) != 0);
static_assert(!Recipe<Optimize<Any>, CudaGraph<WholeStep>>::legal);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Job<Optimize<Any>, CudaGraph<WholeStep>>) != 0);
#endif
