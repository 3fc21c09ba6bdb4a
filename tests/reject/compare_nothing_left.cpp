// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: compare has no recipes. Write compare<Baseline, A, B>(job), or compare(product(Recipe<...>{}, Axis<...>{}), job).
#include <frugal/compare.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize.hpp>

#include <torch/nn/modules/linear.h>
#include <boost/hana/filter.hpp>

using namespace frugal;

inline auto make = [] { return torch::nn::Linear(1, 1); };
using Work = CompareJob<decltype(make), CrossEntropy, TensorDataset, TensorDataset>;

constexpr auto all = product(Recipe<Optimize<AdamW>>{}, Axis<Without, ClipNorm<>>{});
template <class Predicate>
void run(Work& job, Predicate keep) {
  static_cast<void>(compare(boost::hana::filter(all, keep), job));
}
void good(Work& job) { run(job, has_kind<kinds::optimizer>); }
#ifdef FRUGAL_REJECT
void bad(Work& job) { run(job, has_kind<kinds::schedule>); }
#endif
