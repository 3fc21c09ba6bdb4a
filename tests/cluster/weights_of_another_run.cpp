// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

// A run in several processes that begins with the weights of another one, and learns from a teacher.
namespace frugal_test::cluster_weights_of_another_run {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;

torch::nn::Sequential net(std::uint64_t seed, std::int64_t hidden) {
  torch::manual_seed(seed);
  return torch::nn::Sequential(torch::nn::Linear(8, hidden), torch::nn::ReLU(),
                               torch::nn::Linear(hidden, 3));
}

std::string train_in(std::string const& folder, std::string const& from) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({114, 8}, generator);
  fr::TensorDataset train(x, at::randint(0, 3, {114}, generator), {.batch = 4});
  torch::nn::Sequential teacher = net(9, 32);
  fr::Distill<fr::Temperature<4>> const distill{.teachers = {fr::Teacher(teacher)},
                                                .alpha = 0.7,
                                                .hidden = {{.student = "0", .teacher = "0"}}};
  torch::nn::Sequential student = net(1, 16);
  fr::Trainer trainer{
      student,
      distill.objective(fr::CrossEntropy{}),
      fr::Settings{.run_dir = folder, .epochs = 2},
      fr::Optimize<fr::AdamW>{.lr = 1e-2},
      fr::Accumulate<8>{},
      fr::Checkpoint<fr::Every<2>>{.resume = from.empty() ? fr::Resume::Exact : fr::Resume::Weights,
                                   .from = from},
      distill,
      support::Notice::of_environment(),
      fr::Replicate<fr::Exact>{}};
  fr::Report const report = trainer.fit(train);
  return "exit " + std::to_string(report.exit_code()) + ", " + fr::module_identity(*student);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  rank_processes::answer(
      train_in(std::getenv("FRUGAL_TEST_FOLDER"), std::getenv("FRUGAL_TEST_FROM")));
}

std::vector<std::string> run_in(std::filesystem::path const& folder, int size,
                                std::string const& from = "", int notice_step = 0) {
  return rank_processes::run("", size,
                             support::Notice::environment(size - 1, notice_step,
                                                          {"FRUGAL_TEST_FOLDER=" + folder.string(),
                                                           "FRUGAL_TEST_FROM=" + from}));
}

TEST_CASE("processes begin with the weights of another run, and go on with another number") {
  support::TemporaryFolder const folder;
  std::string const first = (folder / "first").string();
  std::string const own = run_in(first, 1).front();
  for (std::string const& each : run_in(folder / "four", 4)) CHECK(each == own);

  std::string const expected = run_in(folder / "1", 1, first).front();
  CHECK(expected != own);
  for (std::string const& each : run_in(folder / "4", 4, first)) CHECK(each == expected);
  for (std::string const& each : run_in(folder / "run", 4, first, 3)) {
    CHECK(each.find("exit 75") != std::string::npos);
  }
  // The run's own checkpoint counts from now on.
  for (std::string const& each : run_in(folder / "run", 2, first)) CHECK(each == expected);
}

}  // namespace frugal_test::cluster_weights_of_another_run
