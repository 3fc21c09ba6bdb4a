// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: compare has only recipes that no Trainer accepts. Recipe<...>::fault says why, or list one of them in compare<...>(job).
#include <frugal/compare.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

inline auto make = [] { return torch::nn::Linear(1, 1); };
using Work = CompareJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset>;

using Good = Recipe<Optimize<AdamW>, Precision<BF16>>;
using Bad = Good::with<Audit<BitExact>>;
void good(Work& job) { static_cast<void>(compare(Axis<Good, Bad>{}, job)); }
#ifdef FRUGAL_REJECT
void bad(Work& job) { static_cast<void>(compare(Axis<Bad>{}, job)); }
#endif
