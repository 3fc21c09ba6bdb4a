// SPDX-License-Identifier: Apache-2.0
// Case 17: NCCL carries what Replicate exchanges, in a group of one; 1, 2 and 4 processes that share
// one GPU, by way of host memory, come to the same bits.
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model/module_identity.hpp>

#include "support/rank_processes.hpp"
#include "support/running.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::gpu_nccl {

using namespace frugal_test::support;
namespace fr = frugal;
namespace rank_processes = support::rank_processes;
using rank_processes::run;
c10::Device const gpu(c10::kCUDA, 0);

TEST_CASE("the exchanges of a window, by NCCL") {
  fr::WaitLimits const limits{.collective = std::chrono::seconds(30)};
  auto const group = fr::detail::nccl_group(c10::make_intrusive<c10d::HashStore>(), 0, 1, limits);
  at::Tensor in = at::arange(1000, at::TensorOptions().dtype(at::kFloat).device(gpu));
  at::Tensor const expected = in.clone();
  at::Tensor out = at::zeros_like(in);
  std::vector<std::int64_t> equal;
  group->alltoall_base(out, in, equal, equal)->wait();
  CHECK(at::equal(out, expected));
  at::Tensor all = at::zeros_like(in);
  group->_allgather_base(all, in)->wait();
  CHECK(at::equal(all, expected));
  std::vector<at::Tensor> sum{in};
  group->allreduce(sum)->wait();
  CHECK(at::equal(in, expected));
}

template <class... Policies>
std::string train(Policies const&... policies) {
  torch::manual_seed(3);
  auto const module =
      std::make_shared<Mlp>(Mlp::Shape{.features = 16, .hidden = 64, .classes = 8, .dropout = 0.2});
  fr::Trainer trainer{
      module,
      fr::CrossEntropy{},
      fr::Settings{.epochs = 3, .seed = 7, .device = gpu},
      fr::Optimize<fr::AdamW>{.lr = 1e-2},
      fr::Accumulate<4>{},
      fr::ClipNorm<0.5>{},
      fr::Replicate<fr::Exact>{
          .with = fr::Communicator::join(fr::World::from_environment(), {}, fr::Transport::gloo)},
      policies...};
  // The last window of an epoch has three micro-batches.
  fr::Report const report =
      trainer.fit(fr::TensorDataset(samples(15 * 32, 91, 16, 8), {.batch = 32}),
                  fr::TensorDataset(samples(64, 92, 16, 8), {.batch = 32}));
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "%d steps, loss %a, %a, ", static_cast<int>(report.steps),
                report.train_loss, report.last()["loss"]);
  return numbers + fr::module_identity(*module);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  rank_processes::answer(rank_processes::job() == "bf16" ? train(fr::Precision<fr::BF16>{})
                                                         : train(fr::Average<fr::Ema<0.9>>{}));
}

TEST_CASE("1, 2 and 4 processes come to the same bits on a GPU") {
  for (std::string const name : {"fp32", "bf16"}) {
    CAPTURE(name);
    std::string const alone = run(name, 1).front();
    for (int const size : {2, 4}) {
      CAPTURE(size);
      for (std::string const& result : run(name, size)) CHECK(result == alone);
    }
  }
}

}  // namespace frugal_test::gpu_nccl
