// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Replicate and Pipeline divide the batches of the sources among the processes, and a source with the order Shared reads one process's part of an epoch: each sample of the other parts would be left out. Make the sources as for one process, with the same order in all processes.
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../support/together.hpp"

using namespace frugal;

using Divides = frugal_test::support::Together<frugal_test::support::Shares, DividedWindows>;

struct Rows {
  std::uint64_t size() const { return 4; }
  std::pair<at::Tensor, at::Tensor> get(std::uint64_t) const { return {}; }
};
using Whole = Loader<Rows, Stack, Pass>;
using OneRank = Loader<Rows, Stack, Shared<Pass>>;
struct Same {
  auto operator()(batch_of<OneRank> batch) const { return batch; }
};

template <class S>
inline constexpr bool stands =
    frugal::detail::strategy_of<Trainer<torch::nn::Linear, MeanSquaredError, Optimize<AdamW>,
                                        Divides>::policies>::require_sources<Whole, S>();
static_assert(stands<Whole>);
static_assert(stands<void>);
static_assert(stands<Mapped<Whole, Same>>);
// A recipe of one process, such as that of each process in a loop of one's own.
static_assert(
    frugal::detail::strategy_of<Trainer<torch::nn::Linear, MeanSquaredError,
                                        Optimize<AdamW>>::policies>::require_sources<OneRank>());
#ifdef FRUGAL_REJECT
static_assert(stands<Mapped<OneRank, Same>>);
void bad(Trainer<torch::nn::Linear, MeanSquaredError, Optimize<AdamW>, Divides>& job,
         OneRank& rows) {
  job.fit(rows);
}
#endif
