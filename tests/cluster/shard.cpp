// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/policy/optimize/partition.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"
#include "support/sharded_training.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::cluster_shard {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;
using rank_processes::run;
using support::sharded_training::job;

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  std::string const way = name.substr(0, name.find(' '));
  std::string const what = name.substr(name.find(' ') + 1);
  if (way == "whole") {
    rank_processes::answer(job(what, fr::Replicate<fr::Exact>{}));
  } else if (way == "exact") {
    rank_processes::answer(job(what, fr::Replicate<fr::Exact, fr::Shard<fr::States>>{}));
  } else if (way == "ring") {
    rank_processes::answer(job(what, fr::Replicate<fr::Ring>{}));
  } else {
    rank_processes::answer(job(what, fr::Replicate<fr::Ring, fr::Shard<fr::States>>{}));
  }
}

TEST_CASE("Exact: 1, 2, 4 and 8 processes come to the same bits, with and without Shard") {
  for (std::string const name : {"adamw", "bf16", "fp16"}) {
    CAPTURE(name);
    std::string const alone = run("whole " + name, 1).front();
    if (name == "adamw") CHECK(run("exact " + name, 1).front() == alone);
    for (int size : name == "adamw" ? std::vector{2, 4, 8} : std::vector{4}) {
      CAPTURE(size);
      for (std::string const& result : run("exact " + name, size)) CHECK(result == alone);
    }
    // Without Shard, by the same norms.
    if (name == "adamw") CHECK(run("whole " + name, 2).front() == alone);
  }
}

TEST_CASE("Ring: the same bits with and without Shard") {
  for (std::string const name : {"adamw", "bf16"}) {
    CAPTURE(name);
    std::string const whole = run("ring " + name, 4).front();
    for (std::string const& result : run("sharded-ring " + name, 4)) CHECK(result == whole);
  }
}

TEST_CASE("a window that is skipped leaves nothing in the parts") {
  std::string const alone = run("whole odd", 1).front();
  CHECK(alone.find("3 steps, 1 skipped") != std::string::npos);
  for (std::string const& result : run("exact odd", 4)) CHECK(result == alone);
}

/// The weights of a run, or its error.
template <class Optimizer>
std::string end_of(std::shared_ptr<fr::Communicator> const& with, Optimizer const& optimizer,
                   double max_norm, int k = 3) {
  torch::nn::Linear net(4, 3);
  {
    at::NoGradGuard const no_gradients;
    net->weight.fill_(0.5), net->bias.fill_(0);
  }
  fr::TensorDataset train(at::ones({16, 4}), at::zeros({16}, at::kLong),
                          {.batch = 4, .shuffle = false});
  fr::ClipNorm<> clip;
  clip.max_norm = max_norm;
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 1},
                      optimizer,
                      clip,
                      fr::Validate<fr::Accuracy, fr::TopK<>>{.metrics = {{}, {.k = k}}},
                      fr::Accumulate<4>{},
                      fr::Replicate<fr::Exact, fr::Shard<fr::States>>{.with = with}};
  try {
    trainer.fit(train);
  } catch (fr::ClusterError const& error) {
    return error.what();
  }
  return fr::module_identity(*net);
}

TEST_CASE("settings that differ between processes are refused: each would update its own part") {
  for (int const what : {0, 1, 2, 3}) {
    std::vector<std::string> texts(4);
    CHECK(ranks::none(ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
      bool const other = with->rank() == 2;
      texts[static_cast<std::size_t>(with->rank())] =
          end_of(with,
                 fr::Optimize<fr::AdamW>{.lr = what == 0 && other ? 2e-3 : 1e-3,
                                         .beta2 = what == 1 && other ? 0.95 : 0.999},
                 what == 2 && other ? 2.0 : 1.0, what == 3 && other ? 2 : 3);
    })));
    char const* const names[] = {
        "the optimizer's lr, group 0 of rank 2 is", "the optimizer's beta2, group 0 of rank 2 is",
        "ClipNorm::max_norm of rank 2 is", "Validate::metrics[1].k of rank 2 is"};
    for (std::string const& text : texts) CHECK(text.find(names[what]) != std::string::npos);
  }
}

TEST_CASE(
    "two kinds of optimizers update their parts, and a parameter is no other side's elsewhere") {
  auto const ends = [](int size, std::string const& of_last) {
    std::vector<std::string> texts(static_cast<std::size_t>(size));
    CHECK(ranks::none(ranks::run(size, [&](std::shared_ptr<fr::Communicator> const& with) {
      texts[static_cast<std::size_t>(with->rank())] =
          end_of(with,
                 fr::Optimize<fr::Partition<fr::SGD, fr::AdamW>>{
                     .select = {with->rank() + 1 == size ? of_last : "bias"},
                     .first = {.lr = 0.1, .momentum = 0.9}},
                 1.0);
    })));
    return texts;
  };
  std::string const alone = ends(1, "bias").front();
  CHECK(alone != ends(1, "weight").front());
  for (std::string const& each : ends(4, "bias")) CHECK(each == alone);
  for (std::string const& each : ends(4, "weight")) {
    CAPTURE(each);
    CHECK(each.find("side (0: first, 1: rest) of 'weight' of rank 3 is '0', and of rank 0 '1'") !=
          std::string::npos);
  }
}

std::vector<std::string> run_in(std::filesystem::path const& folder, std::string const& name,
                                int size, int notice_rank, int notice_step) {
  return run(name, size,
             support::Notice::environment(notice_rank, notice_step,
                                          {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

TEST_CASE("a run goes on with other parts, and without") {
  for (std::string const what : {"counted", "timed"}) {
    CAPTURE(what);
    support::TemporaryFolder const folder;
    std::string const whole = run_in(folder / "whole", "whole " + what, 1, 0, 0).front();
    CHECK(whole.find("exit 0, 12 steps") != std::string::npos);
    std::filesystem::path const run = folder / "run";
    struct Start {
      std::string way;
      int size, rank, step;
    };
    for (Start const& start : std::vector<Start>{
             {"exact ", 4, 3, 2}, {"exact ", 8, 0, 6}, {"whole ", 2, 1, 8}, {"exact ", 2, 1, 11}}) {
      CAPTURE(start.size);
      std::string const steps = "exit 75, " + std::to_string(start.step) + " steps";
      for (std::string const& result :
           run_in(run, start.way + what, start.size, start.rank, start.step)) {
        CAPTURE(result);
        CHECK(result.find(steps) != std::string::npos);
      }
    }
    CHECK(run_in(run, "exact " + what, 1, 0, 0).front() == whole);
  }
}

TEST_CASE("each process has a part of the moments, and all have them once") {
  std::int64_t const all =
      std::stoll(run("exact adamw", 1, {"FRUGAL_TEST_COUNT=1"}).front().substr(7));
  for (int size : {2, 4}) {
    std::int64_t sum = 0;
    for (std::string const& result : run("exact adamw", size, {"FRUGAL_TEST_COUNT=1"})) {
      std::int64_t const part = std::stoll(result.substr(7));
      CHECK(part <= (all / size / 4096 + 1) * 4096);
      sum += part;
    }
    CHECK(sum == all);
  }
}

}  // namespace frugal_test::cluster_shard
