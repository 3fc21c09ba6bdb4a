// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

// Numbers of a run that each process has for its own micro-batches: TrainMetrics and Loss::scalars.
namespace frugal_test::cluster_joined_numbers {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;

struct Data {
  at::Tensor x, y;
};
// The last window of an epoch has 5 of 8 micro-batches, so that processes have none.
Data data(std::int64_t samples = 3 * 32 + 18) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({samples, 8}, generator);
  return {x, at::randint(0, 3, {samples}, generator)};
}

/// A loss of its own weight, with two scalars, one of some micro-batches.
struct Described {
  template <class Module>
  fr::Loss operator()(Module& net, fr::Batch const& batch) const {
    at::Tensor const logits = net->forward(batch.data);
    at::Tensor const counts = batch.target.ne(0);
    double const weight = counts.sum().template item<double>();
    at::Tensor const each = torch::nn::functional::cross_entropy(
        logits, batch.target,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    fr::Loss loss{.value = (each * counts).sum() / weight, .weight = weight, .output = logits};
    loss.scalars = {{"logit", logits.mean()}};
    if (batch.target[0].template item<std::int64_t>() == 1) loss.scalars.add({"ones", weight});
    return loss;
  }
};

using Measured =
    fr::TrainMetrics<fr::Every<3>, fr::Accuracy, fr::Perplexity, fr::ConfusionMatrix, fr::TopK<>>;

template <class... Policies>
std::string train_in(std::string const& folder, Data const& all, support::Notice const& notice,
                     Policies const&... policies) {
  torch::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::ReLU(), torch::nn::Linear(16, 3));
  fr::TensorDataset train(all.x, all.y, {.batch = 4});
  fr::Trainer trainer{net,
                      Described{},
                      fr::Settings{.run_dir = folder, .epochs = 3},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      Measured{.metrics = {{}, {}, {}, {.k = 2}}},
                      fr::Checkpoint<fr::Every<2>>{},
                      fr::Log<fr::Every<1>>{},
                      notice,
                      policies...};
  fr::Report const report = trainer.fit(train);
  char text[256];
  std::snprintf(text, sizeof text, "%lu steps, loss %a, ", static_cast<unsigned long>(report.steps),
                report.train_loss);
  std::string result = text;
  for (auto const& [name, value] : report.train_metrics) {
    std::snprintf(text, sizeof text, "%s %a, ", name.c_str(), value);
    result += text;
  }
  return result + fr::module_identity(*net);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::int64_t const samples = std::stol(std::getenv("FRUGAL_TEST_SAMPLES"));
  std::string const folder = std::getenv("FRUGAL_TEST_FOLDER");
  rank_processes::answer(train_in(folder, data(samples), support::Notice::of_environment(),
                                  fr::Replicate<fr::Exact>{}));
}

std::vector<std::string> run_in(std::filesystem::path const& folder, int size, int notice_rank = 0,
                                int notice_step = 0, int samples = 3 * 32 + 18) {
  return rank_processes::run(
      "", size,
      support::Notice::environment(notice_rank, notice_step,
                                   {"FRUGAL_TEST_FOLDER=" + folder.string(),
                                    "FRUGAL_TEST_SAMPLES=" + std::to_string(samples)}));
}

/// The numbers of each step's line of a log, as text.
std::vector<std::string> lines_of(std::filesystem::path const& folder) {
  std::ifstream in(folder / "metrics.jsonl");
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) {
    if (line.find("\"event\":\"step\"") == std::string::npos) continue;
    std::string kept;
    for (char const* name : {"step", "loss", "logit", "ones", "train_loss", "train_accuracy",
                             "train_perplexity", "train_cohen_kappa"}) {
      std::size_t const at = line.find("\"" + std::string(name) + "\":");
      if (at != std::string::npos) kept += line.substr(at, line.find_first_of(",}", at) - at) + " ";
    }
    all.push_back(kept);
  }
  return all;
}
double value_in(std::string const& line, std::string const& name) {
  std::size_t const at = line.find("\"" + name + "\":");
  return at == std::string::npos ? -1 : std::stod(line.substr(at + name.size() + 3));
}

TEST_CASE(
    "training's numbers are those of all processes, to the bit, and of another number after a "
    "resume") {
  support::TemporaryFolder const folder;
  std::string const whole = run_in(folder / "1", 1).front();
  std::vector<std::string> const expected = lines_of(folder / "1");
  REQUIRE(expected.size() == 12);
  CHECK(value_in(expected[2], "train_perplexity") > 1);
  CHECK(value_in(expected[1], "train_loss") == -1);  // it is due at every third step
  for (int size : {4, 8}) {
    std::filesystem::path const at = folder / std::to_string(size);
    for (std::string const& each : run_in(at, size)) CHECK(each == whole);
    CHECK(lines_of(at) == expected);
  }
  // Stopped between two reports.
  std::filesystem::path const run = folder / "run";
  run_in(run, 4, 3, 4);
  for (std::string const& each : run_in(run, 2)) CHECK(each == whole);
  CHECK(lines_of(run) == expected);
}

TEST_CASE("processes that never have a micro-batch report what the others have measured") {
  support::TemporaryFolder const folder;
  // Two micro-batches an epoch.
  std::string const whole = run_in(folder / "1", 1, 0, 0, 8).front();
  CHECK(whole.find("train_balanced_accuracy") != std::string::npos);
  for (std::string const& each : run_in(folder / "8", 8, 0, 0, 8)) CHECK(each == whole);
  CHECK(lines_of(folder / "8") == lines_of(folder / "1"));
}

TEST_CASE("they are those of a recipe without Replicate") {
  support::TemporaryFolder const folder;
  run_in(folder / "4", 4);
  train_in((folder / "alone").string(), data(), support::Notice{});
  std::vector<std::string> const expected = lines_of(folder / "alone");
  std::vector<std::string> const found = lines_of(folder / "4");
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (char const* name : {"step", "loss", "logit", "ones", "train_loss", "train_accuracy",
                             "train_perplexity", "train_cohen_kappa"}) {
      CAPTURE(name);
      CHECK(value_in(found[i], name) == doctest::Approx(value_in(expected[i], name)).epsilon(1e-4));
    }
  }
}

}  // namespace frugal_test::cluster_joined_numbers
