// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/communicator.hpp>

#include "support/ranks.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::cluster_communicator {

using frugal::ClusterError;
using frugal::Communicator;
namespace ranks = support::ranks;

TEST_CASE("four ranks gather, exchange, collect and add up") {
  std::vector<int> right(4, 0);  // a rank is a thread: the bits of a vector<bool> share a byte
  auto const errors = ranks::run(4, [&](std::shared_ptr<Communicator> const& all) {
    std::int64_t const rank = all->rank();
    at::Tensor const rows = all->gather(at::full({2, 3}, rank, at::kLong), "rows");
    bool ok = rows.equal(at::arange(4).view({4, 1, 1}).expand({4, 2, 3}));

    at::Tensor mine = at::arange(8, at::kFloat) + 10.0 * static_cast<double>(rank);
    at::Tensor parts = at::empty({8});
    all->exchange(parts, mine, "parts");
    at::Tensor const own = at::arange(2 * rank, 2 * rank + 2, at::kFloat);
    ok = ok && parts.view({4, 2}).equal(at::arange(4, at::kFloat).view({4, 1}) * 10 + own);

    at::Tensor one = at::full({2}, static_cast<double>(rank)), everyone = at::empty({8});
    all->collect(everyone, one, "numbers");
    ok = ok && everyone.view({4, 2}).equal(at::arange(4, at::kFloat).view({4, 1}).expand({4, 2}));

    at::Tensor sum = at::full({3}, static_cast<double>(rank + 1));
    all->complete(all->start_sum(sum), "a sum");
    ok = ok && sum.equal(at::full({3}, 10.0));
    right[static_cast<std::size_t>(rank)] = ok && all->hosts().size() == 4;
  });
  CHECK(ranks::none(errors));
  CHECK(right == std::vector<int>(4, 1));
}

TEST_CASE("four ranks send to the next one, by two tags, and those of a tag arrive in order") {
  std::vector<int> right(4, 0);
  auto const errors = ranks::run(4, [&](std::shared_ptr<Communicator> const& all) {
    all->connect_links();
    int const rank = all->rank(), next = (rank + 1) % 4, before = (rank + 3) % 4;
    std::vector<at::Tensor> sent, came;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (int i = 0; i < 3; ++i) {
      sent.push_back(at::full({2}, 10.0 * rank + i));
      works.push_back(all->start_send(sent.back(), next, i == 1 ? 8 : 7));
    }
    for (int const tag : {8, 7, 7}) {  // not in the order of sending
      came.push_back(at::empty({2}));
      works.push_back(all->start_receive(came.back(), before, tag));
    }
    for (auto const& work : works) all->complete_link(work, "a message");
    bool ok = true;
    for (int const i : {1, 0, 2}) {
      ok = ok && came[i == 1 ? 0U : i == 0 ? 1U : 2U].equal(at::full({2}, 10.0 * before + i));
    }
    right[static_cast<std::size_t>(rank)] = ok;
  });
  CHECK(ranks::none(errors));
  CHECK(right == std::vector<int>(4, 1));
}

TEST_CASE("a message that will not come ends with the verdict of the rank that failed") {
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    all->connect_links();
    all->enter_run();
    at::Tensor const place = at::empty({2});
    if (all->rank() == 2) {
      all->fail(std::runtime_error("the labels are gone"));
      // It stays, so its connections do not close.
      std::this_thread::sleep_for(std::chrono::seconds(3));
    } else {
      all->complete_link(all->start_receive(place, 2, 7), "a message of rank 2");
    }
    all->leave_run();
  });
  for (std::size_t const rank : {0U, 1U}) {
    CHECK(errors[rank].find("could not complete a message of rank 2") != std::string::npos);
    CHECK(errors[rank].find("failed at step 0: the labels are gone") != std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE("a world of one needs no store") {
  auto const all = Communicator::join(frugal::World{});
  CHECK(all->gather(at::ones({2}), "x").equal(at::ones({1, 2})));
  at::Tensor in = at::arange(4), out = at::empty({4}, at::kLong);
  all->exchange(out, in, "x");
  CHECK(out.equal(in));
}

TEST_CASE("a rank that ends is an error in the others, which name what they were doing") {
  auto const errors =
      ranks::run(4,
                 [](std::shared_ptr<Communicator> const& all) {
                   static_cast<void>(all->gather(at::ones({1}), "the first"));
                   if (all->rank() == 2) return;
                   static_cast<void>(all->gather(at::ones({1}), "the second"));
                 },
                 {.join = std::chrono::seconds(60), .collective = std::chrono::seconds(5)});
  for (int rank : {0, 1, 3}) {
    std::string const& error = errors[static_cast<std::size_t>(rank)];
    CAPTURE(error);
    CHECK(error.starts_with("frugal: rank " + std::to_string(rank) +
                            " of 4 could not complete the second ("));
    CHECK(error.find(": rank 2 (") != std::string::npos);
    CHECK(error.find(") left the run before the others (") != std::string::npos);
    CHECK(error.find("rank 0 (") == std::string::npos);
    CHECK(error.find("rank 3 (") == std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE(
    "after an error nothing is exchanged any more: others could take it for what they wait for") {
  auto const errors = ranks::run(3, [](std::shared_ptr<Communicator> const& all) {
    static_cast<void>(all->gather(at::ones({1}), "the first"));
    if (all->rank() == 2) return;
    CHECK_THROWS_AS(static_cast<void>(all->gather(at::ones({1}), "the second")), ClusterError);
    // Of another size: Gloo ends the process if ranks 0 and 1 are not in the same one.
    if (all->rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    auto const begun = std::chrono::steady_clock::now();
    try {
      static_cast<void>(all->gather(at::ones({100}), "the third"));
    } catch (ClusterError const&) {
      CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(1));
      throw;
    }
  });
  for (std::size_t const rank : {0U, 1U}) {
    CAPTURE(errors[rank]);
    CHECK(errors[rank].find("could not complete the third") != std::string::npos);
    CHECK(errors[rank].find(": rank 2 (") != std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE(
    "a message over a connection that has broken before it begins names the rank that ended") {
  auto const errors =
      ranks::run(2,
                 [](std::shared_ptr<Communicator> const& all) {
                   all->connect_links();
                   static_cast<void>(all->gather(at::ones({1}), "the first"));
                   if (all->rank() == 1) return;
                   std::this_thread::sleep_for(std::chrono::seconds(1));
                   at::Tensor const tensor = at::ones({1 << 20});
                   for (int i = 0; i < 2; ++i) {  // one of them at least finds it at its beginning
                     try {
                       all->complete_link(all->start_send(tensor, 1, 7), "a message to rank 1");
                     } catch (ClusterError const&) {
                       if (i == 1) throw;
                     }
                   }
                 },
                 {.join = std::chrono::seconds(60), .collective = std::chrono::seconds(5)});
  CAPTURE(errors[0]);
  CHECK(errors[0].starts_with("frugal: rank 0 of 2 could not complete a message to rank 1 ("));
  CHECK(errors[0].find(": rank 1 (") != std::string::npos);
}

TEST_CASE(
    "a broken connection does not end the process by SIGPIPE, which is as before afterwards") {
  auto const now = [] {
    struct sigaction all{};
    ::sigaction(SIGPIPE, nullptr, &all);
    return all.sa_handler;
  };
  auto* const before = std::signal(SIGPIPE, SIG_DFL);
  {
    auto const one = Communicator::join(frugal::World{});
    CHECK((now() == SIG_IGN));
    Communicator::join(frugal::World{}).reset();
    CHECK((now() == SIG_IGN));
  }
  CHECK((now() == SIG_DFL));
  auto* const own = +[](int) {};
  std::signal(SIGPIPE, own);
  {
    auto const one = Communicator::join(frugal::World{});
    CHECK((now() == own));
  }
  CHECK((now() == own));
  std::signal(SIGPIPE, before);
}

}  // namespace frugal_test::cluster_communicator
