// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: search has only recipes that no Trainer accepts with the policies of its job. A search needs Checkpoint: add Checkpoint<Every<500>> to SearchJob; Recipe<...>::fault says what else is missing.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/search.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

inline auto make = [] { return torch::nn::Linear(1, 1); };
using Space = SearchSpace<Axis<Recipe<Optimize<AdamW>>>>;
using Job =
    SearchJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset, Checkpoint<Every<5>>>;

void good(Space& space, Job& job) { static_cast<void>(search(space, job, {}, Tpe{}, Asha<>{})); }
#ifdef FRUGAL_REJECT
using Bare = SearchJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset>;
void bad(Space& space, Bare& job) { static_cast<void>(search(space, job, {})); }
#endif
