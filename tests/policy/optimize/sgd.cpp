// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "policy/optimize/fixture.hpp"

#include <limits>

namespace frugal_test::policy_optimize_sgd {

using namespace frugal_test::policy_optimize;
using frugal::Optimize;
using frugal::SGD;

TEST_CASE("Optimize<SGD> follows torch.optim.SGD for 100 steps in every reference case") {
  CHECK(compare_all<SGD>("SGD") == 9);
}

TEST_CASE("SGD resumed from saved state ends with the same bits, missing gradients included") {
  Json const& which = case_named(fixture().file.at("cases"), "sgd, absent gradients");
  resumes(Optimize<SGD>{.lr = 1e-2}, which);
  resumes(Optimize<SGD>{.lr = 1e-2, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1}, which);
}

std::string refusal(Optimize<SGD> const& policy) {
  frugal::Trainer trainer{std::make_shared<Parts>(fixture().start), Linear{}, frugal::Settings{},
                          policy};
  return error_of<frugal::SettingsError>(
      [&] { trainer.fit(fixture().tables(fixture().file.at("cases").front())); });
}

TEST_CASE("SGD refuses settings out of range and names them") {
  CHECK(contains(refusal({.lr = -1.0}), "lr is -1"));
  CHECK(contains(refusal({.lr = std::numeric_limits<double>::infinity()}), "lr is inf"));
  CHECK(contains(refusal({.momentum = -0.5}), "momentum is -0.5"));
  CHECK(contains(refusal({.momentum = 0.9, .dampening = std::nan("")}), "dampening is nan"));
  CHECK(contains(refusal({.weight_decay = -0.5}), "weight_decay is -0.5"));
}

TEST_CASE("SGD refuses nesterov without momentum or with dampening") {
  CHECK(contains(refusal({.nesterov = true}), "nesterov is set with momentum 0"));
  CHECK(contains(refusal({.momentum = 0.9, .dampening = 0.5, .nesterov = true}), "dampening 0.5"));
}

}  // namespace frugal_test::policy_optimize_sgd
