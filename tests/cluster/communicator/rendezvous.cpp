// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/communicator/rendezvous.hpp>

#include "support/ranks.hpp"
#include "support/sockets.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::cluster_rendezvous {

using frugal::ClusterError;
using frugal::WaitLimits;
using frugal::World;
using frugal::detail::meet;
using frugal::detail::store_of;
using std::chrono::milliseconds;
using support::Port;
namespace ranks = support::ranks;

TEST_CASE("ranks meet at the store of rank 0, and know where each runs") {
  Port port;
  port.close();
  std::vector<std::size_t> met(3, 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      World world = ranks::place(rank, 3);
      world.port = port.number;
      WaitLimits const limits{.join = std::chrono::seconds(60), .collective = {}};
      auto const store = store_of(world, limits);
      auto const all = meet(*store, world, limits.join);
      met[static_cast<std::size_t>(rank)] =
          all[0].host.find("process " + std::to_string(::getpid())) == std::string::npos ||
                  !all[2].owner || all[2].owner->pid != ::getpid()
              ? 0
              : all.size();
      // Rank 0 serves the others until they have read.
      store->add("done", 1);
      while (rank == 0 && store->add("done", 0) != 3) std::this_thread::sleep_for(milliseconds(5));
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(met == std::vector<std::size_t>(3, 3));
}

TEST_CASE("ranks that do not come are named") {
  auto store = c10::make_intrusive<c10d::HashStore>();
  std::string error;
  std::thread other(
      [&] { CHECK_THROWS_AS(meet(*store, ranks::place(2, 4), milliseconds(400)), ClusterError); });
  while (!store->check({"here/2"})) std::this_thread::sleep_for(milliseconds(1));
  CHECK_THROWS_WITH_AS(
      meet(*store, ranks::place(0, 4), milliseconds(400)),
      doctest::Contains("ranks 1, 3 of 4 did not come within 0 s (rank 0 of 4 (threads)"),
      ClusterError);
  other.join();
}

TEST_CASE("a rank that comes twice is an error") {
  auto store = c10::make_intrusive<c10d::HashStore>();
  CHECK_THROWS_AS(meet(*store, ranks::place(1, 2), milliseconds(20)), ClusterError);
  CHECK_THROWS_WITH_AS(meet(*store, ranks::place(1, 2), milliseconds(20)),
                       doctest::Contains("rank 1 is taken"), ClusterError);
}

TEST_CASE("a port that is taken, and a store that is not there") {
  Port const taken;
  World world = ranks::place(0, 2);
  world.port = taken.number;
  WaitLimits const limits{.join = milliseconds(1500), .collective = {}};
  CHECK_THROWS_WITH_AS(
      store_of(world, limits),
      doctest::Contains(
          ("rank 0 cannot serve the store at 127.0.0.1:" + std::to_string(taken.number)).c_str()),
      ClusterError);
  Port gone;
  gone.close();
  world = ranks::place(1, 2);
  world.port = gone.number;
  CHECK_THROWS_WITH_AS(store_of(world, limits),
                       doctest::Contains("rank 1 finds no store at 127.0.0.1:"), ClusterError);
}

}  // namespace frugal_test::cluster_rendezvous
