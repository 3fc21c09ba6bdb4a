// SPDX-License-Identifier: Apache-2.0
// Case 17: NCCL carries what Replicate exchanges, in a group of one; 1, 2 and 4 processes that share
// one GPU, by way of host memory, come to the same bits.
#include <doctest/doctest.h>

#include <frugal/base/child_process.hpp>
#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model/module_identity.hpp>

#include "support/running.hpp"
#include "support/sockets.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::gpu_nccl {

using namespace frugal_test::support;
using namespace frugal::literals;
namespace fr = frugal;
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
      fr::ClipNorm<0.5_r>{},
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
  std::string const result = std::string(std::getenv("FRUGAL_TEST_JOB")) == "bf16"
                                 ? train(fr::Precision<fr::BF16>{})
                                 : train(fr::Average<fr::Ema<0.9_r>>{});
  std::cout << "RESULT " << result << std::endl;
}

std::vector<std::string> run(std::string const& name, int size) {
  std::string const self = std::filesystem::read_symlink("/proc/self/exe");
  Port free;
  free.close();
  std::vector<std::unique_ptr<fr::detail::ChildProcess>> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.push_back(std::make_unique<fr::detail::ChildProcess>(
        std::vector<std::string>{
            "env", "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
            "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(free.number),
            "FRUGAL_TEST_JOB=" + name, self, "--no-skip", "--test-case=a rank of a world"},
        fr::detail::ProcessLimits{.patience = std::chrono::seconds(50)}));
  }
  std::vector<std::string> results;
  for (auto& process : processes) {
    fr::detail::ProcessEnd const end = process->wait();
    std::size_t const begin = end.said.find("RESULT ");
    CAPTURE(end.said);
    REQUIRE(begin != std::string::npos);
    results.push_back(end.said.substr(begin, end.said.find('\n', begin) - begin));
    std::printf("%s, rank of %d: %s\n", name.c_str(), size, results.back().c_str());
  }
  return results;
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
