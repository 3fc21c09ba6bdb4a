// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "support/rank_processes.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace frugal_test::cluster_rank_watch {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;
using fr::detail::RankWatch;
using namespace std::chrono_literals;

fr::detail::WatchTimes const quick{.beat = 20ms, .grace = 10s};

struct Ranks {
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> hosts{"one", "two", "three"};
  std::vector<std::unique_ptr<RankWatch>> all{};

  Ranks() {
    for (int rank = 0; rank < 3; ++rank) {
      all.push_back(std::make_unique<RankWatch>(store, rank, hosts, false, quick));
      all.back()->enter_run();
      all.back()->at_step(7);
    }
  }
};

TEST_CASE("a rank that has taken part in fewer exchanges hangs") {
  Ranks ranks;
  for (auto const& each : ranks.all) each->enter("the losses of a step"), each->leave();
  ranks.all[0]->enter("the sum of gradients");
  ranks.all[2]->enter("the sum of gradients");
  std::string const verdict = ranks.all[2]->find();
  CHECK(verdict == "rank 1 (two) hangs at step 7 after the losses of a step, for 0 s");
  CHECK(ranks.all[0]->find() == verdict);  // the first one is that of all
  std::this_thread::sleep_for(100ms);
  CHECK(ranks.all[1]->verdict() == verdict);
}

TEST_CASE("where ranks wait for single others, one that waits for none hangs") {
  Ranks ranks;
  for (auto const& each : ranks.all) each->enter("the losses of a step"), each->leave();
  ranks.all[0]->enter_link("an activation");
  ranks.all[1]->enter_link("an activation"), ranks.all[1]->leave();
  ranks.all[2]->enter_link("a gradient");
  CHECK(ranks.all[2]->find() == "rank 1 (two) hangs at step 7 after an activation, for 0 s");
}

TEST_CASE("a rank that fails says why, and one that leaves is named") {
  Ranks ranks;
  ranks.all[1]->fail(std::string("there is no such file\nand a stack"));
  CHECK(ranks.all[0]->find() == "rank 1 (two) failed at step 7: there is no such file");
  Ranks others;
  others.all[2].reset();
  CHECK(others.all[0]->find() == "rank 2 (three) left the run before the others");
}

TEST_CASE("if no rank is behind, the network is to blame") {
  Ranks ranks;
  for (auto const& each : ranks.all) each->enter("the sum of gradients");
  CHECK(ranks.all[0]->find() ==
        "no rank is behind: the network does not carry the sum of gradients");
}

/// Does something at a step.
struct AtStep {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.AtStep";
  };
  using listens = fr::list<fr::on::gradients>;
  static constexpr bool knows_ranks = true;

  std::uint64_t step = 0;
  void (*act)() = nullptr;

  template <class Context>
  struct State {
    using transient = void;
    explicit State(AtStep const& settings) : step(settings.step), act(settings.act) {}
    void on_gradients(fr::Gradients<Context> const& phase) const {
      if (act != nullptr && phase.counters().step == step) act();
    }
    std::uint64_t step;
    void (*act)();
  };
};

void end() {
  std::this_thread::sleep_for(1s);  // a beat says where it was
  std::raise(SIGKILL);
}
void hang() { std::this_thread::sleep_for(60s); }
void fail() { throw std::runtime_error("the labels are gone"); }

// Rank 2 ends, hangs or fails at step 3. The others say what they have found, and after how long.
TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  auto const with = fr::Communicator::join(fr::World::from_environment(),
                                           {.join = 60s, .collective = 3s, .hung = 5s});
  torch::manual_seed(1);
  torch::nn::Linear net(8, 3);
  fr::TensorDataset train(torch::randn({256, 8}), torch::randint(0, 3, {256}), {.batch = 4});
  AtStep at;
  if (with->rank() == 2) {
    at = {.step = 3, .act = name == "ends" ? &end : name == "hangs" ? &hang : &fail};
  }
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 1},
                      fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Accumulate<8>{},
                      fr::Replicate<fr::Ring>{.with = with},
                      at};
  auto const begun = std::chrono::steady_clock::now();
  std::string said = "it trained on";
  try {
    trainer.fit(train);
  } catch (std::exception const& error) {
    said = error.what();
  }
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begun;
  rank_processes::answer(std::to_string(took.count()) + " s: " + said);
}

/// What the ranks of a world of four have answered; that of rank 2 may be missing.
std::vector<std::string> world_in_which_rank_2(std::string const& does) {
  return rank_processes::run(does, 4, {}, /*may_be_silent=*/2);
}

void check(std::vector<std::string> const& answers, std::string const& verdict, double most) {
  for (std::size_t rank : {0U, 1U, 3U}) {
    CAPTURE(rank);
    std::string const& answer = answers[rank];
    CAPTURE(answer);
    CHECK(answer.find("rank " + std::to_string(rank) + " of 4 could not complete") !=
          std::string::npos);
    CHECK(answer.find(": rank 2 (") != std::string::npos);
    CHECK(answer.find(verdict) != std::string::npos);
    CHECK(std::stod(answer.substr(std::string("RESULT ").size())) < most);
  }
}

TEST_CASE("the others name a rank that was killed") {
  check(world_in_which_rank_2("ends"), ") has ended; last seen at step 3", 20);
}
TEST_CASE("the others name a rank that hangs, and it is ended") {
  std::vector<std::string> const answers = world_in_which_rank_2("hangs");
  check(answers, ") hangs at step 3 after ", 25);
  CHECK(answers[2].empty());
}
TEST_CASE("the others say why a rank has failed") {
  std::vector<std::string> const answers = world_in_which_rank_2("fails");
  check(answers, ") failed at step 3: the labels are gone", 20);
  CHECK(answers[2].find("the labels are gone") != std::string::npos);
}

}  // namespace frugal_test::cluster_rank_watch
