// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: tensor_parallel.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/grid.hpp>

#include "support/ranks.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::cluster_grid {

using frugal::Communicator;
using frugal::Grid;
using frugal::GridShape;
namespace ranks = support::ranks;

std::string refusal(int size, GridShape shape) {
  try {
    Grid::join(ranks::place(0, size), shape);
  } catch (frugal::SettingsError const& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("eight ranks are four copies of two shards, and each dimension adds up its own") {
  std::vector<std::string> texts(8);
  std::vector<std::vector<std::int64_t>> seen(8);
  auto const errors = ranks::run(8, [&](std::shared_ptr<Communicator> const& all) {
    Grid const grid = Grid::of(all, {.tensor = 2});
    auto const rank = static_cast<std::size_t>(all->rank());
    texts[rank] = grid.text();
    at::Tensor const mine = at::full({1}, all->rank(), at::kLong);
    for (Communicator* each : {grid.data.get(), grid.tensor.get(), grid.everyone.get()}) {
      at::Tensor const rows = each->gather(mine, "ranks");
      for (std::int64_t i = 0; i < rows.numel(); ++i) {
        seen[rank].push_back(rows.view(-1)[i].item<std::int64_t>());
      }
    }
    at::Tensor sum = at::full({2}, static_cast<double>(all->rank()));
    grid.data->complete(grid.data->start_sum(sum), "a sum");
    seen[rank].push_back(sum[1].item<std::int64_t>());
  });
  REQUIRE(ranks::none(errors));
  CHECK(texts[5] == "rank 5 of 8: data 2 of 4, tensor 1 of 2");
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    std::int64_t const t = rank % 2, d = rank / 2;
    std::vector<std::int64_t> expected{t, 2 + t, 4 + t, 6 + t, 2 * d, 2 * d + 1};
    for (std::int64_t i = 0; i < 8; ++i) expected.push_back(i);
    expected.push_back(12 + 4 * t);
    CHECK(seen[static_cast<std::size_t>(rank)] == expected);
  }
}

TEST_CASE("eight ranks are two copies of four stages") {
  std::vector<std::string> texts(8);
  std::vector<std::vector<std::int64_t>> seen(8);
  auto const errors = ranks::run(8, [&](std::shared_ptr<Communicator> const& all) {
    Grid const grid = Grid::of(all, {.stages = 4});
    auto const rank = static_cast<std::size_t>(all->rank());
    texts[rank] = grid.text();
    CHECK(grid.stages->everyone() == all);
    at::Tensor const mine = at::full({1}, all->rank(), at::kLong);
    for (Communicator* each : {grid.data.get(), grid.stages.get(), grid.tensor.get()}) {
      at::Tensor const rows = each->gather(mine, "ranks");
      for (std::int64_t i = 0; i < rows.numel(); ++i) {
        seen[rank].push_back(rows.view(-1)[i].item<std::int64_t>());
      }
    }
  });
  REQUIRE(ranks::none(errors));
  CHECK(texts[6] == "rank 6 of 8: data 1 of 2, stage 2 of 4");
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    std::int64_t const stage = rank % 4, first = rank - stage;
    CHECK(seen[static_cast<std::size_t>(rank)] == std::vector<std::int64_t>{stage, 4 + stage, first,
                                                                            first + 1, first + 2,
                                                                            first + 3, rank});
  }
}

TEST_CASE("a grid of one process exchanges nothing") {
  Grid const grid = Grid::join(frugal::World{}, {});
  CHECK(grid.text() == "rank 0 of 1: data 0 of 1, tensor 0 of 1");
  CHECK(grid.tensor->gather(at::ones({2}), "x").equal(at::ones({1, 2})));
}

TEST_CASE("sizes that do not multiply to the world's are refused before a process waits") {
  CHECK(refusal(6, {.tensor = 4}).find("6 processes cannot be cut into groups of 4") !=
        std::string::npos);
  CHECK(refusal(8, {.data = 2, .tensor = 2}).find("2 x 2 is 4") != std::string::npos);
  CHECK(refusal(8, {.stages = 3}).find("or set GridShape::stages to a divisor of 8") !=
        std::string::npos);
  CHECK(refusal(8, {.tensor = 2, .stages = 2})
            .find("Set GridShape::tensor or GridShape::stages to 1") != std::string::npos);
  CHECK(refusal(8, {.tensor = 0}).find("each dimension has one process or more") !=
        std::string::npos);
}

TEST_CASE("ranks that ask for different grids are an error in all, with both") {
  auto const errors = ranks::run(4, [](std::shared_ptr<Communicator> const& all) {
    Grid::of(all, {.tensor = all->rank() == 3 ? 4 : 2});
  });
  for (std::string const& error : errors) {
    CHECK(error.find(
              "the grid (data x tensor x stages) of rank 3 is '1 x 4', and of rank 0 '2 x 2'") !=
          std::string::npos);
  }
}

TEST_CASE("a rank that hangs in one dimension is named by its rank in the world") {
  std::atomic<int> judged = 0;
  auto const errors =
      ranks::run(4,
                 [&](std::shared_ptr<Communicator> const& all) {
                   Grid const grid = Grid::of(all, {.tensor = 2});
                   all->enter_run();
                   if (all->rank() == 3) {  // hangs until the others have given up
                     for (int i = 0; i < 6000 && judged < 3; ++i)
                       std::this_thread::sleep_for(std::chrono::milliseconds(10));
                     all->leave_run();
                     return;
                   }
                   // Rank 0 waits for rank 2, which waits for rank 3.
                   try {
                     static_cast<void>(grid.tensor->gather(at::ones({1}), "activations"));
                     static_cast<void>(grid.data->gather(at::ones({1}), "gradients"));
                   } catch (...) {
                     ++judged;
                     throw;
                   }
                 },
                 {.join = std::chrono::seconds(60), .collective = std::chrono::seconds(3)});
  for (std::size_t const rank : {0U, 1U, 2U}) {
    CAPTURE(errors[rank]);
    CHECK(errors[rank].starts_with("frugal: rank " + std::to_string(rank) +
                                   " of 4 could not complete "));
    CHECK(errors[rank].find("rank 3 (") != std::string::npos);
    CHECK(errors[rank].find(" hangs at step 0 after ") != std::string::npos);
    CHECK(errors[rank].find("rank 2 (") == std::string::npos);
  }
}

}  // namespace frugal_test::cluster_grid
