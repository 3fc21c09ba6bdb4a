// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/live_bytes.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"
#include "support/sharded_training.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::cluster_layer_weights {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;
using rank_processes::run;
using support::sharded_training::job;

/// Small enough for several buckets.
constexpr std::int64_t bucket = 16 << 10;
/// The embedding and the convolution are in parts, and not the layer that some micro-batches leave out.
constexpr std::int64_t layers = 2000;

/// Chooses its layer by the data.
struct ForkImpl : torch::nn::Module {
  torch::nn::Linear left{register_module("left", torch::nn::Linear(32, 32))};
  torch::nn::Linear right{register_module("right", torch::nn::Linear(32, 32))};
  torch::Tensor forward(torch::Tensor const& x) {
    return x.sum().item<float>() > 0 ? left(x) : right(x);
  }
};
TORCH_MODULE(Fork);

std::string train_fork() {
  torch::manual_seed(1);
  Fork net;
  at::Tensor const signs = at::tensor({1.0F, -1.0F}).repeat({8}).view({16, 1});
  fr::TensorDataset train(at::ones({16, 32}) * signs, at::zeros({16}, at::kLong),
                          {.batch = 1, .shuffle = false});
  fr::Trainer trainer{
      net,
      fr::CrossEntropy{},
      fr::Settings{.epochs = 1},
      fr::Optimize<fr::SGD>{.lr = 0.1},
      fr::Accumulate<4>{},
      fr::Replicate<fr::Exact, fr::Shard<fr::States, fr::Grads, fr::Params>>{.whole_below = 512}};
  try {
    static_cast<void>(trainer.fit(train));
  } catch (fr::Error const& error) {
    return error.what();
  }
  return "no error";
}

/// Micro-batches without a target that counts have no backward pass.
std::string train_masked() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(32, 64), torch::nn::Tanh(), torch::nn::Linear(64, 4));
  at::Tensor const x = at::randn({24, 32});
  at::Tensor const y = at::randint(0, 4, {24});
  for (std::int64_t const i : {5, 10, 15}) y[i] = -100;
  fr::TensorDataset train(x, y, {.batch = 1, .shuffle = false});
  auto const objective = [](torch::nn::Sequential& module, fr::Batch const& batch) {
    auto const counts = static_cast<double>(batch.target.ne(-100).sum().item<std::int64_t>());
    return fr::Loss{.value = at::cross_entropy_loss(module->forward(batch.data), batch.target),
                    .weight = counts};
  };
  fr::Trainer trainer{
      net,
      objective,
      fr::Settings{.epochs = 1},
      fr::Optimize<fr::SGD>{.lr = 0.1},
      fr::Accumulate<4>{},
      fr::Replicate<fr::Exact, fr::Shard<fr::States, fr::Grads, fr::Params>>{.whole_below = 512}};
  fr::Report const report = trainer.fit(train);
  return std::to_string(report.steps) + " steps, " + fr::module_identity(*net);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  if (name == "masked") return rank_processes::answer(train_masked());
  if (name == "fork") return rank_processes::answer(train_fork());
  std::string const way = name.substr(0, name.find(' '));
  std::string const what = name.substr(name.find(' ') + 1);
  using Divided = fr::Shard<fr::States, fr::Grads, fr::Params>;
  if (way == "whole") {
    rank_processes::answer(job<false>(what, fr::Replicate<fr::Exact>{}));
  } else if (way == "exact") {
    rank_processes::answer(job<false>(
        what, fr::Replicate<fr::Exact, Divided>{.bucket_bytes = bucket, .whole_below = layers}));
  } else {
    rank_processes::answer(job<false>(
        what, fr::Replicate<fr::Ring, Divided>{.bucket_bytes = bucket, .whole_below = layers}));
  }
}

TEST_CASE("Exact: 1, 2, 4 and 8 processes come to the bits of one without Shard") {
  for (std::string const name : {"adamw", "bf16", "odd"}) {
    CAPTURE(name);
    std::string const alone = run("whole " + name, 1).front();
    for (int size : name == "adamw" ? std::vector{1, 2, 4, 8} : std::vector{4}) {
      CAPTURE(size);
      for (std::string const& result : run("exact " + name, size)) CHECK(result == alone);
    }
  }
}

TEST_CASE("Ring: a world that is a power of two adds up in the order of Exact") {
  std::string const alone = run("whole adamw", 1).front();
  for (std::string const& result : run("ring adamw", 4)) CHECK(result == alone);
}

std::vector<std::string> run_in(std::filesystem::path const& folder, std::string const& name,
                                int size, int notice_rank, int notice_step) {
  return run(name, size,
             support::Notice::environment(notice_rank, notice_step,
                                          {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

TEST_CASE("a run goes on with other parts, and without") {
  support::TemporaryFolder const folder;
  std::string const whole = run_in(folder / "whole", "whole counted", 1, 0, 0).front();
  std::filesystem::path const started = folder / "run";
  struct Start {
    std::string way;
    int size, rank, step;
  };
  for (Start const& start :
       std::vector<Start>{{"exact ", 8, 3, 3}, {"exact ", 2, 1, 6}, {"whole ", 4, 0, 10}}) {
    std::string const steps = "exit 75, " + std::to_string(start.step) + " steps";
    for (std::string const& result :
         run_in(started, start.way + "counted", start.size, start.rank, start.step)) {
      CAPTURE(result);
      CHECK(result.find(steps) != std::string::npos);
    }
  }
  for (std::string const& result : run_in(started, "exact counted", 4, 0, 0)) {
    CHECK(result == whole);
  }
}

TEST_CASE("processes that call other layers at the same time are refused before they update") {
  for (std::string const& result : run("fork", 2)) {
    CAPTURE(result);
    CHECK(result.find("have collected weights of other layers at the same time") !=
          std::string::npos);
  }
  CHECK(run("fork", 1).front() == "RESULT no error");
}

TEST_CASE("a micro-batch of weight 0 takes part in the collections of the others") {
  std::string const alone = run("masked", 1).front();
  CHECK(alone.find("RESULT 6 steps") != std::string::npos);
  for (int size : {2, 4}) {
    for (std::string const& result : run("masked", size)) CHECK(result == alone);
  }
}

TEST_CASE("a process has its part of the weights and gradients, and few whole ones at a time") {
  constexpr int size = 4;
  constexpr std::int64_t width = 128;
  constexpr std::int64_t bytes = width * width * 4;  // of each weight
  constexpr std::int64_t count = 24;
  std::vector<std::int64_t> peaks(size), held(size);
  CHECK(ranks::none(ranks::run(size, [&](std::shared_ptr<fr::Communicator> const& all) {
    torch::nn::Sequential net;
    for (std::int64_t i = 0; i < count; ++i) {
      net->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
      at::NoGradGuard const no_gradients;
      net[static_cast<std::size_t>(i)]->as<torch::nn::Linear>()->weight.fill_(0.01);
    }
    support::LiveBytes live;
    fr::Parameters const list = fr::Parameters::of(*net);
    fr::detail::ShardedParameters sharded(
        *all, list, {.bucket = bytes, .layers = fr::detail::layer_weights(*net, 1)});
    live.forget_peak();
    held[static_cast<std::size_t>(all->rank())] = live.now();
    fr::detail::ScatteredGradients sums(*all, {.micro_batches = 1});
    double const unit = 1;
    sums.begin(list.tensors, &sharded);
    sums.before(true, unit);
    net->forward(at::ones({1, width})).sum().backward();
    sums.after();
    sums.begin_rest();
    std::vector<at::Tensor> const own = sums.own_sum({true, true, true, true}, sharded);
    peaks[static_cast<std::size_t>(all->rank())] = live.peak() - live.now();
    sharded.give_back();
    CHECK(net[0]->as<torch::nn::Linear>()->weight.eq(0.01F).all().item<bool>());
  })));
  for (std::int64_t const each : held) CHECK(each <= count * bytes / size + bytes / 4);
  // Two groups that travel both ways, a gradient that comes, and two whole weights.
  for (std::int64_t const peak : peaks) CHECK(peak <= 9 * bytes);
}

}  // namespace frugal_test::cluster_layer_weights
