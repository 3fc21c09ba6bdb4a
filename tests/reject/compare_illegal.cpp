// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: Audit<BitExact> needs FP32: products in fewer bits depend on the machine. Remove Precision or Audit.
#include <frugal/compare.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

inline auto make = [] { return torch::nn::Linear(1, 1); };
using Work = CompareJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset>;

using Good = Recipe<Optimize<AdamW>, Precision<BF16>>;
void good(Work& job) { static_cast<void>(compare<Good>(job)); }
#ifdef FRUGAL_REJECT
void bad(Work& job) { static_cast<void>(compare<Good, Good::with<Audit<BitExact>>>(job)); }
#endif
