// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: compare has no recipes. Write compare<Baseline, A, B>(job), or compare(product(Recipe<...>{}, Axis<...>{}), job).
#include <frugal/compare.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

inline auto make = [] { return torch::nn::Linear(1, 1); };
using Work = CompareJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset>;

void good(Work& job) { static_cast<void>(compare<Recipe<Optimize<AdamW>>>(job)); }
#ifdef FRUGAL_REJECT
void bad(Work& job) { static_cast<void>(compare<>(job)); }
#endif
