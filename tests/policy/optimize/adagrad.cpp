// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "policy/optimize/fixture.hpp"

namespace frugal_test::policy_optimize_adagrad {

using namespace frugal_test::policy_optimize;
using frugal::Adagrad;
using frugal::Optimize;

TEST_CASE("Optimize<Adagrad> follows torch.optim.Adagrad for 100 steps in every reference case") {
  CHECK(compare_all<Adagrad>("Adagrad") == 6);
}

TEST_CASE("Adagrad resumed from saved state ends with the same bits, missing gradients included") {
  resumes(Optimize<Adagrad>{.lr_decay = 0.1, .initial_accumulator = 0.5},
          case_named(fixture().file.at("cases"), "adagrad, absent gradients"));
}

TEST_CASE("Adagrad maximizing is Adagrad minimizing the negative") {
  Json const& which = case_named(fixture().file.at("cases"), "adagrad");
  auto tables = fixture().tables(which);
  auto const down = std::make_shared<Parts>(fixture().start);
  frugal::Trainer{down, Linear{}, frugal::Settings{}, Optimize<Adagrad>{}}.fit(tables);
  for (Table& table : tables) {
    for (at::Tensor& gradient : table.gradients) gradient = gradient.neg();
  }
  auto const up = std::make_shared<Parts>(fixture().start);
  frugal::Trainer{up, Linear{}, frugal::Settings{}, Optimize<Adagrad>{.maximize = true}}.fit(
      tables);
  CHECK(same_bits(tensors_of(*down), tensors_of(*up)));
}

std::string refusal(Optimize<Adagrad> const& policy) {
  frugal::Trainer trainer{std::make_shared<Parts>(fixture().start), Linear{}, frugal::Settings{},
                          policy};
  return error_of<frugal::SettingsError>(
      [&] { trainer.fit(fixture().tables(fixture().file.at("cases").front())); });
}

TEST_CASE("Adagrad refuses settings out of range and names them") {
  CHECK(contains(refusal({.lr = -1.0}), "lr is -1"));
  CHECK(contains(refusal({.lr_decay = -0.5}), "lr_decay is -0.5"));
  CHECK(contains(refusal({.weight_decay = -0.5}), "weight_decay is -0.5"));
  CHECK(contains(refusal({.initial_accumulator = -0.5}), "initial_accumulator is -0.5"));
  CHECK(contains(refusal({.eps = -1.0}), "eps is -1"));
}

}  // namespace frugal_test::policy_optimize_adagrad
