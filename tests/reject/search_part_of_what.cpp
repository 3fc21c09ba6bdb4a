// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: after its settings search() takes a schedule, such as SuccessiveHalving<Eta<3>>{.trials = 64}, and a sampler, such as SobolSampler{}.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/clip.hpp>
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
void bad(Space& space, Job& job) { static_cast<void>(search(space, job, {}, ClipNorm<>{})); }
#endif
