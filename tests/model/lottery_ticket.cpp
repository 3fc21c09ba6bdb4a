// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/lottery_ticket.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "support/running.hpp"

namespace frugal_test::model_lottery_ticket {

using namespace frugal_test::support;
using frugal::LotteryTicket;
using frugal::Optimize;
using frugal::Rewind;
using frugal::Rounds;
using frugal::TensorDataset;
using frugal::TicketRound;
using frugal::Tickets;

/// What the training forward passes of a round have begun with.
struct Watch {
  std::vector<std::vector<at::Tensor>>* weights;
  std::vector<at::Tensor>* rows;
  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    if (at::GradMode::is_enabled()) {
      std::vector<at::Tensor> now;
      for (at::Tensor const& each : module->parameters()) now.push_back(each.detach().clone());
      weights->push_back(now);
      rows->push_back(batch.data.clone());
    }
    return frugal::CrossEntropy{}(module, batch);
  }
};

struct Seen {
  std::vector<std::vector<std::vector<at::Tensor>>> weights;  ///< by round and step
  std::vector<std::vector<at::Tensor>> rows;
  std::vector<std::string> names;
};

template <class Lottery>
Tickets draw(Lottery const& lottery, Seen& seen, std::uint64_t epochs = 3) {
  TensorDataset train(samples(40), {.batch = 8, .shuffle = true});
  TensorDataset valid(samples(16, 92), {.batch = 8});
  // Round after round they are pushed to, and their addresses are kept.
  seen.weights.reserve(16), seen.rows.reserve(16);
  return lottery.draw(
      [&](TicketRound const& round) {
        auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.2});
        seen.names.clear();
        for (auto const& item : module->named_parameters()) seen.names.push_back(item.key());
        seen.weights.emplace_back();
        seen.rows.emplace_back();
        return frugal::Trainer{module,
                               Watch{&seen.weights.back(), &seen.rows.back()},
                               frugal::Settings{.epochs = epochs},
                               Optimize<frugal::AdamW>{.lr = 0.02},
                               frugal::Schedule<frugal::Warmup<6>>{},
                               frugal::Validate<frugal::Accuracy>{},
                               round};
      },
      train, valid);
}

TEST_CASE(
    "each round begins with the bits of the rewound step, and with zeros where it is pruned") {
  Seen seen;
  auto const tickets = draw(LotteryTicket<Rewind<7>, Rounds<3>>{.fraction = 0.25}, seen);
  REQUIRE(tickets.rounds.size() == 4);
  REQUIRE(seen.weights.size() == 4);
  CHECK(seen.weights[0].size() == 15);
  for (std::size_t round = 1; round <= 3; ++round) {
    CAPTURE(round);
    REQUIRE(seen.weights[round].size() == 8);  // steps 7 to 14
    // The data go on where they were.
    for (std::size_t step = 0; step < 8; ++step) {
      CHECK(at::equal(seen.rows[round][step], seen.rows[0][step + 7]));
    }
    for (std::size_t i = 0; i < seen.names.size(); ++i) {
      CAPTURE(seen.names[i]);
      at::Tensor const at_step = seen.weights[0][7][i];
      CHECK(at::equal(tickets.rewound.at(seen.names[i]), at_step));
      auto const mask = tickets.rounds[round].masks.find(seen.names[i]);
      bool const masked = mask != tickets.rounds[round].masks.end();
      CHECK(masked == seen.names[i].ends_with("weight"));
      at::Tensor const expected = masked ? at_step * mask->second : at_step;
      CHECK(at::equal(seen.weights[round][0][i], expected));
      if (!masked) continue;
      for (auto const& now : seen.weights[round]) {
        CHECK_FALSE((now[i] * mask->second.logical_not()).any().item<bool>());
      }
      // What an earlier round has pruned stays so.
      at::Tensor const before = tickets.rounds[round - 1].masks.at(seen.names[i]);
      CHECK_FALSE(mask->second.logical_and(before.logical_not()).any().item<bool>());
    }
  }
}

TEST_CASE("a round that prunes next to nothing repeats the first run bit by bit") {
  Seen seen;
  // Of 72 weights the smallest share of one is none.
  static_cast<void>(draw(LotteryTicket<Rewind<4>, Rounds<1>>{.fraction = 1e-6}, seen));
  REQUIRE(seen.weights[1].size() == 11);
  for (std::size_t step = 0; step < 11; ++step) {
    for (std::size_t i = 0; i < seen.names.size(); ++i) {
      CHECK(at::equal(seen.weights[1][step][i], seen.weights[0][step + 4][i]));
    }
  }
}

TEST_CASE("the smallest trained weights of all layers are pruned, a share of what remains") {
  Seen seen;
  auto const tickets = draw(LotteryTicket<Rewind<0>, Rounds<2>>{.fraction = 0.5}, seen);
  // 48 and 24 weights.
  CHECK(tickets.rounds[0].sparsity == 0);
  CHECK(tickets.rounds[1].sparsity == 0.5);
  CHECK(tickets.rounds[2].sparsity == 0.75);
  CHECK(seen.weights[1].size() == 15);
  std::int64_t kept_in_first = 0;
  for (auto const& [name, mask] : tickets.rounds[1].masks) {
    if (name == "first.weight") kept_in_first = mask.sum().item<std::int64_t>();
  }
  CHECK(kept_in_first != 24);
}

TEST_CASE("sparsity is printed against the metrics") {
  Seen seen;
  auto const tickets = draw(LotteryTicket<Rewind<2>, Rounds<1>>{.fraction = 0.5}, seen);
  REQUIRE(tickets.rounds.size() == 2);
  for (auto const& each : tickets.rounds) {
    CHECK(each.metrics["accuracy"] >= 0);
    CHECK(each.metrics["accuracy"] <= 1);
  }
  std::ostringstream out;
  out << tickets;
  std::string const text = out.str();
  CHECK(text.starts_with("round  sparsity"));
  CHECK(text.find("accuracy") != std::string::npos);
  CHECK(text.find("\n    1    0.5000") != std::string::npos);
}

TEST_CASE("what cannot be drawn is refused") {
  Seen seen;
  auto const refused = [&](auto const& lottery) {
    try {
      static_cast<void>(draw(lottery, seen));
    } catch (frugal::SettingsError const& error) {
      return error.fault().what;
    }
    return std::string("not refused");
  };
  CHECK(refused(LotteryTicket<Rewind<100>, Rounds<1>>{}) ==
        "the run ended at step 15, before the step to which its rounds go back");
  CHECK(refused(LotteryTicket<Rewind<2>>{.fraction = 1}) ==
        "LotteryTicket has a fraction of 1.000000");
  CHECK(refused(LotteryTicket<Rewind<2>, frugal::Where<"none.*">>{}) ==
        "the pattern 'none.*' matches nothing");
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                          Optimize<frugal::AdamW>{}, TicketRound{}};
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8), {.batch = 8})), frugal::SettingsError);
}

}  // namespace frugal_test::model_lottery_ticket
