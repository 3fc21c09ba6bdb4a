// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model/alternate.hpp>

#include "support/ranks.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::cluster_turns {

using namespace frugal;
namespace ranks = support::ranks;

struct PairImpl : torch::nn::Module {
  torch::nn::Linear generator{register_module("generator", torch::nn::Linear(3, 2))};
  torch::nn::Linear critic{register_module("critic", torch::nn::Linear(2, 1))};
};
TORCH_MODULE(Pair);

struct Game {
  at::Tensor operator()(Pair& pair, Batch const& batch) const {
    at::Tensor const fake = pair->generator->forward(batch.data);
    at::Tensor const says = pair->critic->forward(fake);
    if (!trains(pair->critic)) return at::softplus(-says).mean();
    return at::softplus(says).mean() + at::softplus(-pair->critic->forward(batch.target)).mean();
  }
};

/// Ranks are threads, which share LibTorch's generator: they draw nothing but their equal beginnings.
std::pair<Pair, TensorDataset> beginning() {
  static std::mutex one_at_a_time;
  std::lock_guard const lock(one_at_a_time);
  return seeded(1, [] {
    Pair pair;
    return std::pair(pair, TensorDataset(torch::randn({60, 3}), torch::randn({60, 2}),
                                         {.batch = 4, .shuffle = false}));
  });
}

template <class Replicate>
std::string train(Replicate const& replicate, std::uint64_t critic_steps = 2) {
  auto [pair, data] = beginning();
  Alternate<Turn<Where<"critic.*">>, Turn<Where<"generator.*">>> turns;
  std::get<0>(turns.turns).steps = critic_steps;
  Trainer trainer{pair,
                  Game{},
                  Settings{.epochs = 2},
                  Optimize<AdamW>{.lr = 0.01},
                  Accumulate<4>{},
                  turns,
                  ClipNorm<0.5>{},
                  replicate};
  Report const report = trainer.fit(data);
  return std::to_string(report.steps) + " " + module_identity(*pair);
}

template <class Replicate>
std::set<std::string> ends(int size) {
  std::mutex one_at_a_time;
  std::set<std::string> all;
  std::vector<std::string> const errors = ranks::run(size, [&](auto const& with) {
    std::string const end = train(Replicate{.with = with});
    std::lock_guard const lock(one_at_a_time);
    all.insert(end);
  });
  CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(size)));
  return all;
}

TEST_CASE("parts that train in turns have the same bits in 1, 2 and 4 processes") {
  std::set<std::string> const one = ends<Replicate<Exact>>(1);
  REQUIRE(one.size() == 1);
  CHECK(one.begin()->rfind("8 ", 0) == 0);
  CHECK(ends<Replicate<Exact>>(2) == one);
  CHECK(ends<Replicate<Exact>>(4) == one);
  // Of other bits than Exact, but the same in each process.
  CHECK(ends<Replicate<Ring>>(2).size() == 1);
}

TEST_CASE("processes with turns of different lengths are refused") {
  std::vector<std::string> const errors = ranks::run(2, [&](auto const& with) {
    train(Replicate<Exact>{.with = with}, with->rank() == 0 ? 2 : 3);
  });
  for (std::string const& error : errors) {
    CHECK(error.find("the steps of Alternate's turn 0") != std::string::npos);
  }
}

}  // namespace frugal_test::cluster_turns
