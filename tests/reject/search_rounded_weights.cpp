// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: a search saves a trial at the end of each rung, and Checkpoint<WeightsIn<...>> would round its weights there. Remove WeightsIn.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/formats.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/search.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

inline auto make = [] { return torch::nn::Linear(1, 1); };
using Space = SearchSpace<Axis<Recipe<Optimize<AdamW>>>>;
template <class... Options>
using Job = SearchJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset,
                      Checkpoint<Every<5>, Options...>>;

void good(Space& space, Job<>& job) { static_cast<void>(search(space, job, {})); }
#ifdef FRUGAL_REJECT
void bad(Space& space, Job<WeightsIn<FP16>>& job) { static_cast<void>(search(space, job, {})); }
#endif
