// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: a sequence of recipes or policies is a Hana sequence of types. Write Axis<A, B>{}, which is hana::tuple_t<A, B>, or the result of one of Hana's algorithms.
#include <frugal/compare.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

inline auto make = [] { return torch::nn::Linear(1, 1); };
using Work = CompareJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset>;

using Good = Recipe<Optimize<AdamW>>;
void good(Work& job) { static_cast<void>(compare(Axis<Good>{}, job)); }
#ifdef FRUGAL_REJECT
void bad(Work& job) { static_cast<void>(compare(Good{}, job)); }
#endif
