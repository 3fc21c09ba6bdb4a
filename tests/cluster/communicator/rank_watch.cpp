// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/cluster/communicator/rank_watch.hpp>
#include <frugal/frugal.hpp>

#include "support/rank_processes.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <atomic>
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

/// A store that takes nothing from one rank any more, as from one whose process is stopped.
struct Frozen final : c10d::PrefixStore {
  explicit Frozen(c10::intrusive_ptr<c10d::Store> const& store) : c10d::PrefixStore("", store) {}
  using c10d::PrefixStore::set;
  void set(std::string const& key, std::vector<std::uint8_t> const& value) override {
    if (!is_frozen) c10d::PrefixStore::set(key, value);
  }
  std::atomic<bool> is_frozen = false;
};

TEST_CASE("a rank that is silent for a while is waited for, and for long has ended") {
  auto const common = c10::make_intrusive<c10d::HashStore>();
  auto const store = c10::make_intrusive<Frozen>(common),
             of_second = c10::make_intrusive<Frozen>(common);
  fr::detail::WatchTimes const times{.beat = 20ms, .grace = 10s, .silent = 1s};
  std::vector<std::string> const hosts{"one", "two"};
  RankWatch one(store, 0, hosts, false, times), two(of_second, 1, hosts, false, times);
  one.enter_run(), two.enter_run();
  auto const look_for = [&](std::chrono::milliseconds time) {
    std::string found;
    auto const end = std::chrono::steady_clock::now() + time;
    while (found.empty() && std::chrono::steady_clock::now() < end) {
      found = one.look_for_ended();
      std::this_thread::sleep_for(10ms);
    }
    return found;
  };
  CHECK(look_for(100ms).empty());
  of_second->is_frozen = true;
  CHECK(look_for(200ms).empty());
  of_second->is_frozen = false;
  CHECK(look_for(200ms).empty());
  of_second->is_frozen = true;
  // Who was stopped itself has not waited meanwhile.
  std::this_thread::sleep_for(1500ms);
  CHECK(one.look_for_ended().empty());
  CHECK(look_for(20s) == "rank 1 (two) has ended; last seen at step 0 after its start");
}

TEST_CASE("a rank whose process the system knows to be dead is not waited for") {
  auto const common = c10::make_intrusive<c10d::HashStore>();
  auto const store = c10::make_intrusive<Frozen>(common),
             of_second = c10::make_intrusive<Frozen>(common);
  fr::detail::WatchTimes const times{.beat = 20ms, .grace = 10s, .silent = 60s};
  std::vector<std::string> const hosts{"one", "two"};
  RankWatch one(store, 0, hosts, false, times), two(of_second, 1, hosts, false, times);
  of_second->is_frozen = true;
  fr::LockOwner owner = fr::LockOwner::here();
  one.arrived(1, "two", owner);
  for (int i = 0; i < 20; ++i) {
    CHECK(one.look_for_ended().empty());
    std::this_thread::sleep_for(10ms);
  }
  ++owner.started;  // an earlier process of this number
  one.arrived(1, "two", owner);
  CHECK(one.look_for_ended().starts_with("rank 1 (two) has ended"));
}

TEST_CASE("a rank that ends while connections are made is noticed by the thread of the beats") {
  using Connections = RankWatch::Connections;
  auto const common = c10::make_intrusive<c10d::HashStore>();
  auto const store = c10::make_intrusive<Frozen>(common),
             of_second = c10::make_intrusive<Frozen>(common);
  fr::detail::WatchTimes const times{.beat = 20ms, .grace = 1h, .silent = 60s};
  std::vector<std::string> const hosts{"one", "two"};
  RankWatch one(store, 0, hosts, false, times), two(of_second, 1, hosts, false, times);
  fr::LockOwner owner = fr::LockOwner::here();
  one.arrived(1, "two", owner);
  auto const found_within = [&](std::chrono::milliseconds time) {
    auto const end = std::chrono::steady_clock::now() + time;
    while (one.seen_verdict().empty() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(5ms);
    return one.seen_verdict();
  };
  one.connects(Connections::open);
  CHECK(found_within(300ms).empty());
  of_second->is_frozen = true;
  one.connects(Connections::close);
  ++owner.started;  // an earlier process of this number
  one.arrived(1, "two", owner);
  CHECK(found_within(300ms).empty());
  one.connects(Connections::open);
  std::string const found = found_within(20s);
  one.connects(Connections::rest);  // before this process is ended
  CHECK(found.starts_with("rank 1 (two) has ended"));
}

TEST_CASE("a rank that beats late on a busy machine has not ended, and a stopped one hangs") {
  auto const common = c10::make_intrusive<c10d::HashStore>();
  auto const store = c10::make_intrusive<Frozen>(common),
             of_second = c10::make_intrusive<Frozen>(common);
  std::vector<std::string> const hosts{"one", "two"};
  RankWatch one(store, 0, hosts, false, quick), two(of_second, 1, hosts, false, quick);
  one.enter_run(), two.enter_run();
  one.enter("a sum");
  fr::LockOwner owner = fr::LockOwner::here();
  one.arrived(1, "two", owner);
  of_second->is_frozen = true;
  CHECK(one.find_ended().empty());
  CHECK(one.find().starts_with("rank 1 (two) hangs at step 0 after its start"));
  ++owner.started;  // an earlier process of this number
  one.arrived(1, "two", owner);
  store->deleteKey("verdict");
  CHECK(one.find() == "rank 1 (two) has ended; last seen at step 0 after its start");
}

TEST_CASE("what a rank is busy with is in its total, whoever looks, and however seldom") {
  Ranks ranks;
  auto const total = [&](std::size_t rank) { return ranks.all[1]->busy_times()[rank].total; };
  CHECK(total(0) == 0);
  {
    auto const busy = ranks.all[0]->busy();
    CHECK(ranks.all[1]->busy_times()[0].now);
    CHECK_FALSE(ranks.all[1]->busy_times()[2].now);
    std::this_thread::sleep_for(30ms);
  }
  CHECK_FALSE(ranks.all[1]->busy_times()[0].now);
  std::uint64_t const first = total(0);
  CHECK(first >= 30'000);
  auto busy = ranks.all[0]->busy();
  {
    auto const waits = ranks.all[0]->idle();
    std::uint64_t const before = total(0);
    CHECK_FALSE(ranks.all[1]->busy_times()[0].now);
    std::this_thread::sleep_for(100ms);
    CHECK(total(0) == before);
  }
  CHECK(ranks.all[1]->busy_times()[0].now);
  std::uint64_t const before = total(0);
  for (int i = 0; i < 500 && total(0) == before; ++i) std::this_thread::sleep_for(10ms);
  CHECK(total(0) > before);  // by the beats

  std::atomic<int> calls = 0;
  auto const limited = ranks.all[1]->on_verdict([&] { ++calls; }, 400ms);
  std::this_thread::sleep_for(1500ms);
  CHECK(calls == 0);
  busy.reset();
  for (int i = 0; i < 500 && calls == 0; ++i) std::this_thread::sleep_for(10ms);
  CHECK(calls == 1);
}

TEST_CASE("the process that serves the store ends after those that wait have read the verdict") {
  auto const store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> const hosts{"one", "two", "three"};
  fr::detail::WatchTimes const times{.beat = 100ms, .grace = 10s};
  RankWatch serves(store, 0, hosts, /*serves=*/true, times);
  serves.meets(true);
  RankWatch second(store, 1, hosts, false, times);
  second.meets(true);
  std::atomic<bool> has_read = false;
  std::thread reads([&] {
    std::this_thread::sleep_for(500ms);
    has_read = true;
    CHECK(second.noticed(second.look_for_ended()) == "rank 2 (three) has not come");
  });
  CHECK(serves.noticed(serves.accuse(2, "come")) == "rank 2 (three) has not come");
  CHECK(has_read);
  reads.join();
  // Those that have read it, and one that never came, keep nobody.
  auto const begun = std::chrono::steady_clock::now();
  CHECK(!serves.verdict().empty());
  CHECK(std::chrono::steady_clock::now() - begun < 1s);
}

TEST_CASE("nothing that a stranger says of a rank is taken for a number or printed as it is") {
  Ranks ranks;
  for (std::string const text : {"", "x", "7 99 0 0 0 0 0 0 0 0 here", "1 1 0"}) {
    CAPTURE(text);
    ranks.all[2].reset();
    ranks.store->set("watch/2", text);
    CHECK(ranks.all[0]->find().find("what a rank says of itself is damaged (rank 2)") == 0);
  }
  ranks.store->set("watch/2", std::string("1 3 0 0 7 0 0 0 0 0 gone\x1b[2J"));
  CHECK(ranks.all[0]->find() == "rank 2 (three) failed at step 7: gone [2J");
}

/// Does something at a step.
struct AtStep {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.AtStep";
  };
  using listens = fr::list<fr::on::gradients>;
  using properties = fr::list<fr::property::knows_ranks>;

  std::uint64_t step = 0;
  void (*act)() = nullptr;

  struct State {
    using transient = void;
    explicit State(AtStep const& settings) : step(settings.step), act(settings.act) {}
    void on_gradients(fr::Gradients const& phase) const {
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

/// Rank 2 is killed before all have come, since rank 3 never does. Or rank 2 is killed while rank 0 writes for longer
/// than a process that hangs may live.
void unlike_others(std::string const& name) {
  fr::World const world = fr::World::from_environment();
  auto const begun = std::chrono::steady_clock::now();
  auto const took = [&] {
    std::chrono::duration<double> const all = std::chrono::steady_clock::now() - begun;
    return std::to_string(all.count()) + " s: ";
  };
  if (name == "never comes" && world.rank == 3) return rank_processes::answer("away");
  std::thread dies;
  if (name == "never comes" && world.rank == 2) {
    dies = std::thread([world] {
      auto const store = fr::detail::store_of(world, {});
      c10d::PrefixStore open(fr::detail::GuardedStore::fingerprint(""), store);
      while (!open.check({"here/0", "here/1", "here/2"})) std::this_thread::sleep_for(10ms);
      std::this_thread::sleep_for(1s);  // beats say so, too
      std::raise(SIGKILL);
    });
  }
  try {
    auto const all = fr::Communicator::join(world, {.join = 40s, .collective = 60s, .hung = 1s});
    all->enter_run();
    static_cast<void>(all->gather(at::ones({1}), "the first"));
    if (world.rank == 2) std::raise(SIGKILL);
    if (world.rank == 0) {
      auto const busy = all->busy();
      std::this_thread::sleep_for(4500ms);
    }
    static_cast<void>(all->gather(at::ones({1}), "the second"));
    rank_processes::answer("all came");
  } catch (fr::ClusterError const& error) {
    rank_processes::answer(took() + error.what());
  }
}

// Rank 2 ends, hangs or fails at step 3. The others say what they have found, and after how long.
TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  if (name == "never comes" || name == "busy") return unlike_others(name);
  auto const with = fr::Communicator::join(fr::World::from_environment(),
                                           {.join = 60s, .collective = 4s, .hung = 4s});
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

TEST_CASE("the others name a rank that was killed before all had come, within seconds") {
  std::vector<std::string> const answers = world_in_which_rank_2("never comes");
  for (std::size_t rank : {0U, 1U}) {
    CAPTURE(answers[rank]);
    CHECK(answers[rank].find(" of 4 could not meet the others (") != std::string::npos);
    CHECK(answers[rank].find(": rank 2 (") != std::string::npos);
    CHECK(answers[rank].find(") has ended") != std::string::npos);
    CHECK(std::stod(answers[rank].substr(std::string("RESULT ").size())) < 20);
  }
}
TEST_CASE("a rank that writes when another one dies is not ended in the middle of it") {
  std::vector<std::string> const answers = world_in_which_rank_2("busy");
  for (std::size_t rank : {0U, 1U, 3U}) {
    CAPTURE(answers[rank]);
    CHECK(answers[rank].find("could not complete the second") != std::string::npos);
    CHECK(answers[rank].find(": rank 2 (") != std::string::npos);
  }
  CHECK(std::stod(answers[0].substr(std::string("RESULT ").size())) > 4.4);
}

}  // namespace frugal_test::cluster_rank_watch

namespace frugal_test::cluster_wait_limit {

using frugal::detail::BusyTime;
using frugal::detail::WaitLimit;
using namespace std::chrono_literals;
using Busy = std::vector<BusyTime>;

/// Looks as often as it wants to for so long; whether it was over.
bool is_over(WaitLimit& limit, std::chrono::milliseconds time, Busy const& seen) {
  for (auto passed = 0ms; passed < time; passed += 250ms) {
    limit.pass(250ms);
    if (limit.wants_look() && limit.is_over(seen)) return true;
  }
  return false;
}

TEST_CASE("a wait in which nobody is busy ends at its limit") {
  WaitLimit limit(10s, 500ms);
  CHECK_FALSE(is_over(limit, 9750ms, {{}, {}}));
  CHECK(is_over(limit, 1500ms, {{}, {}}));
  WaitLimit unseen(10s, 500ms);  // the store does not answer
  CHECK_FALSE(is_over(unseen, 9750ms, {}));
  CHECK(is_over(unseen, 1500ms, {}));
}

TEST_CASE("looks come often, and at most every few seconds of a long limit") {
  WaitLimit limit(10min, 500ms);
  int looks = 0;
  for (auto passed = 0ms; passed < 10min - 250ms; passed += 250ms) {
    limit.pass(250ms);
    if (!limit.wants_look()) continue;
    ++looks;
    CHECK_FALSE(limit.is_over({{}}));
  }
  CHECK(looks == 119);
}

TEST_CASE("what a rank was busy with between two looks begins the limit again") {
  WaitLimit limit(10s, 500ms);
  CHECK_FALSE(is_over(limit, 9s, {{}, {5, false}}));
  CHECK_FALSE(is_over(limit, 8s, {{}, {2'000'000, false}}));
  CHECK_FALSE(is_over(limit, 8s, {{2'000, false}, {2'000'000, false}}));
  CHECK(is_over(limit, 4s, {{2'000, false}, {2'000'000, false}}));
}

TEST_CASE("a rank that is busy is waited for as long as it beats") {
  WaitLimit limit(10s, 500ms);
  BusyTime busy{.total = 0, .now = true};
  for (int i = 0; i < 100; ++i) {
    busy.total += 2'500'000;
    CHECK_FALSE(is_over(limit, 2500ms, {{}, busy}));
  }
  // It has ended: its total stands still.
  CHECK_FALSE(is_over(limit, 10s, {{}, busy}));
  CHECK(is_over(limit, 5s, {{}, busy}));
}

TEST_CASE("one that waits while a thread of its own writes waits on") {
  // Another rank may wait for what it writes.
  WaitLimit limit(4s, 500ms);
  BusyTime self{.total = 0, .now = true};
  for (int i = 0; i < 20; ++i) {
    self.total += 1'000'000;
    CHECK_FALSE(is_over(limit, 1s, {self, {}}));
  }
}

}  // namespace frugal_test::cluster_wait_limit
