// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/communicator.hpp>

#include "support/ranks.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::cluster_store_board {

using frugal::Communicator;
using frugal::SaveBoard;
using std::chrono::seconds;
namespace ranks = support::ranks;

TEST_CASE("a text waits for the one who asks for it, in any thread, and each board has its own") {
  std::vector<std::string> found(6);
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    auto const rank = static_cast<unsigned>(all->rank());
    for (unsigned round = 0; round < 2; ++round) {
      std::shared_ptr<SaveBoard> const board = all->save_board();
      CHECK(board->rank() == rank);
      CHECK(board->count() == 3);
      std::thread waits([&] { found[3 * round + rank] = board->await(0, "folder"); });
      if (rank == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        board->post("folder", "step " + std::to_string(round));
        CHECK(board->await(2, "2") == "written");
        board->forget("2");
        board->post("all", "");
      }
      if (rank == 2) board->post("2", "written");
      CHECK(board->await(0, "all").empty());
      waits.join();
    }
  });
  CHECK(ranks::none(errors));
  CHECK((found ==
         std::vector<std::string>{"step 0", "step 0", "step 0", "step 1", "step 1", "step 1"}));
}

TEST_CASE("who waits for a process that is gone names it, although nobody exchanges anything") {
  auto const errors = ranks::run(3, [](std::shared_ptr<Communicator> const& all) {
    std::shared_ptr<SaveBoard> const board = all->save_board();
    all->enter_run();
    if (all->rank() == 2) return;
    board->await(2, "2");
  });
  for (int const rank : {0, 1}) {
    std::string const& error = errors[static_cast<std::size_t>(rank)];
    CAPTURE(error);
    CHECK(error.starts_with("frugal: the processes could not write a checkpoint together (rank " +
                            std::to_string(rank) + " of 3): rank 2 ("));
    CHECK(error.find(") left the run before the others") != std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE("who waits too long accuses the process that it waits for, and the others hear of it") {
  std::atomic<int> accused = 0;
  auto const errors = ranks::run(3,
                                 [&](std::shared_ptr<Communicator> const& all) {
                                   std::shared_ptr<SaveBoard> const board = all->save_board();
                                   all->enter_run();
                                   // It writes nothing, and then waits itself.
                                   for (int i = 0; all->rank() == 2 && i < 6000 && accused < 2; ++i)
                                     std::this_thread::sleep_for(std::chrono::milliseconds(10));
                                   try {
                                     board->await(all->rank() == 2 ? 0 : 2, "never");
                                   } catch (...) {
                                     ++accused;
                                     throw;
                                   }
                                 },
                                 {.join = seconds(60), .collective = seconds(2)});
  for (std::string const& error : errors) {
    CAPTURE(error);
    CHECK(error.find(" has not written its part of a checkpoint for ") != std::string::npos);
  }
  CHECK(errors[0].find(": rank 2 (") != std::string::npos);
}

TEST_CASE("a world of one has no board") {
  CHECK(Communicator::join(frugal::World{})->save_board() == nullptr);
}

}  // namespace frugal_test::cluster_store_board
