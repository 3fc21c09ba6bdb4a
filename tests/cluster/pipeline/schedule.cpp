// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::cluster_pipeline_schedule {

using namespace frugal;

std::vector<std::vector<PipelineAction>> orders_of(int ranks, int micro_batches, int chunks) {
  std::vector<std::vector<PipelineAction>> orders;
  for (int rank = 0; rank < ranks; ++rank)
    orders.push_back(pipeline_order(rank, ranks, micro_batches, chunks));
  return orders;
}

/// "F0 F1 B0 ...", with the chunk after a point where there are several.
std::string text_of(std::vector<PipelineAction> const& order, bool with_chunks = false) {
  std::string text;
  for (PipelineAction const& each : order) {
    text += (text.empty() ? "" : " ") + std::string(each.is_forward ? "F" : "B") +
            std::to_string(each.micro_batch);
    if (with_chunks) text += "." + std::to_string(each.chunk);
  }
  return text;
}

TEST_CASE("1F1B is the schedule of figure 4 of Narayanan et al.: 4 ranks, 8 micro-batches") {
  auto const orders = orders_of(4, 8, 1);
  CHECK(text_of(orders[0]) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  CHECK(text_of(orders[1]) == "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7");
  CHECK(text_of(orders[3]) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST_CASE(
    "interleaved is the schedule of that figure: rank 3 begins with four of its first chunk") {
  // Its lower half: device 1 does 1 2 3 4 of chunk one, 1 2 3 4 of chunk two, then 5 6 before its
  // first backward pass, which comes after eleven forward passes.
  auto const orders = orders_of(4, 8, 2);
  CHECK(text_of({orders[0].begin(), orders[0].begin() + 14}, true) ==
        "F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 F3.1 F4.0 F5.0 F6.0 B0.1 F7.0 B1.1");
  CHECK(text_of({orders[3].begin(), orders[3].begin() + 8}, true) ==
        "F0.0 F1.0 F2.0 F3.0 F0.1 B0.1 F1.1 B1.1");
}

TEST_CASE(
    "each rank makes each pass once, micro-batches of a chunk in order, and none waits for ever") {
  for (int const chunks : {1, 2, 3}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (int micro_batches = 1; micro_batches <= 19; ++micro_batches) {
        CAPTURE(chunks);
        CAPTURE(ranks);
        CAPTURE(micro_batches);
        auto const orders = orders_of(ranks, micro_batches, chunks);
        for (int rank = 0; rank < ranks; ++rank) {
          auto const& order = orders[static_cast<std::size_t>(rank)];
          std::set<std::tuple<bool, int, int>> seen;
          std::vector<std::vector<int>> next(2, std::vector<int>(static_cast<std::size_t>(chunks)));
          bool in_order = true, at_once = true;
          for (std::size_t i = 0; i < order.size(); ++i) {
            PipelineAction const& each = order[i];
            seen.emplace(each.is_forward, each.chunk, each.micro_batch);
            // The messages of a link are matched by their order.
            in_order =
                in_order && next[each.is_forward ? 1 : 0][static_cast<std::size_t>(each.chunk)]++ ==
                                each.micro_batch;
            bool const is_last = rank == ranks - 1 && each.chunk == chunks - 1;
            if (is_last && each.is_forward) {
              at_once = at_once && i + 1 < order.size() &&
                        order[i + 1] == PipelineAction{false, each.chunk, each.micro_batch};
            }
          }
          CHECK(in_order);
          CHECK(at_once);
          CHECK(order.size() == static_cast<std::size_t>(2 * chunks * micro_batches));
          CHECK(seen.size() == order.size());
        }
        CHECK(pipeline_timeline(orders, chunks).completes);
      }
    }
  }
}

TEST_CASE("a rank of 1F1B keeps the activations of p - rank micro-batches at most") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int micro_batches : {1, 3, 8, 32}) {
      PipelineTimeline const line = pipeline_timeline(orders_of(ranks, micro_batches, 1), 1);
      for (int rank = 0; rank < ranks; ++rank) {
        CHECK(line.most_live[static_cast<std::size_t>(rank)] ==
              std::min(micro_batches, ranks - rank));
      }
    }
  }
  // Interleaved: those of its warm-up and one more.
  PipelineTimeline const line = pipeline_timeline(orders_of(4, 16, 2), 2);
  CHECK((line.most_live == std::vector<int>{11, 9, 7, 5}));
}

TEST_CASE("the computed bubble is (p - 1) / (v m + p - 1), whatever forward and backward take") {
  for (int const chunks : {1, 2, 4}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int const groups : {1, 2, 3, 8}) {
        for (auto const& [forward, backward] :
             std::vector<std::pair<double, double>>{{1, 2}, {1, 1}, {3, 4}}) {
          CAPTURE(chunks);
          CAPTURE(ranks);
          CAPTURE(groups);
          int const micro_batches = groups * ranks;
          PipelineTimeline const line =
              pipeline_timeline(orders_of(ranks, micro_batches, chunks), chunks, forward, backward);
          for (std::size_t rank = 0; rank < line.slots.size(); ++rank) {
            CHECK(line.idle(rank) ==
                  doctest::Approx(pipeline_bubble(ranks, micro_batches, chunks)).epsilon(1e-9));
          }
        }
      }
    }
  }
  CHECK(pipeline_bubble(4, 8, 1) == doctest::Approx(3.0 / 11));
  CHECK(pipeline_bubble(4, 8, 2) == doctest::Approx(3.0 / 19));
}

TEST_CASE(
    "messages that take time make the step longer, and two ranks that wait for each other are "
    "seen") {
  double const quick = pipeline_timeline(orders_of(4, 8, 1), 1).span;
  CHECK(quick == doctest::Approx(33));
  CHECK(pipeline_timeline(orders_of(4, 8, 1), 1, 1, 2, 0.5).span > quick + 2);
  // Backward before forward.
  std::vector<std::vector<PipelineAction>> const circle{{{true, 0, 0}, {false, 0, 0}},
                                                        {{false, 0, 0}, {true, 0, 0}}};
  PipelineTimeline const line = pipeline_timeline(circle, 1);
  CHECK_FALSE(line.completes);
  CHECK(line.slots[1].empty());
}

}  // namespace frugal_test::cluster_pipeline_schedule
