// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph<WholeStep> replays a step without the module's output, and a policy of this recipe (TrainMetrics) measures that of each training batch. Remove one of the two; Validate works with CudaGraph<WholeStep>.
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/train_metrics.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
using Job = Trainer<torch::nn::Linear, CrossEntropy, Ps...>;

static_assert(sizeof(Job<Optimize<AdamW>, TrainMetrics<Every<5>>>) != 0);
static_assert(!Recipe<Optimize<AdamW>, CudaGraph<WholeStep>, TrainMetrics<Every<5>>>::legal);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Job<Optimize<AdamW>, CudaGraph<WholeStep>, TrainMetrics<Every<5>>>) != 0);
#endif
