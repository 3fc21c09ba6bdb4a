// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "policy/optimize/fixture.hpp"

namespace frugal_test::policy_optimize_adam {

using namespace frugal_test::policy_optimize;
using frugal::Adam;
using frugal::AdamW;
using frugal::Optimize;

TEST_CASE("the number formula gives the gradients that the reference file was made with") {
  for (Json const& check : fixture().file.at("gradient_check")) {
    auto const p = check.at("parameter").get<std::uint32_t>();
    double const value = number(
        {1, check.at("step").get<std::uint32_t>(), p, check.at("index").get<std::uint32_t>()});
    CHECK(std::ldexp(value, -static_cast<int>(p)) == check.at("value").get<double>());
  }
}

TEST_CASE("Optimize<AdamW> follows torch.optim.AdamW for 100 steps in every reference case") {
  CHECK(compare_all<AdamW>("AdamW") == 8);
}

TEST_CASE("Optimize<Adam> follows torch.optim.Adam for 100 steps in every reference case") {
  CHECK(compare_all<Adam>("Adam") == 6);
}

TEST_CASE("AdamW resumed from saved state ends with the same bits, missing gradients included") {
  Json const& which = case_named(fixture().file.at("cases"), "adamw, absent gradients");
  Optimize<AdamW> policy{.lr = 1e-2, .weight_decay = 0.1, .amsgrad = true};
  resumes(policy, which);
  policy.groups = {frugal::no_decay_for_biases_and_norms()};
  resumes(policy, which);
}

TEST_CASE("Adam resumed from saved state ends with the same bits, missing gradients included") {
  resumes(Optimize<Adam>{.lr = 1e-2, .weight_decay = 0.1},
          case_named(fixture().file.at("cases"), "adam, absent gradients"));
}

template <class Algorithm>
std::string refusal(Optimize<Algorithm> const& policy) {
  frugal::Trainer trainer{std::make_shared<Parts>(fixture().start), Linear{}, frugal::Settings{},
                          policy};
  return error_of<frugal::SettingsError>(
      [&] { trainer.fit(fixture().tables(fixture().file.at("cases").front())); });
}

TEST_CASE_TEMPLATE("Adam and AdamW refuse settings out of range and name them", A, Adam, AdamW) {
  double const nan = std::nan("");
  CHECK(contains(refusal(Optimize<A>{.lr = -1.0}), "lr is -1"));
  CHECK(contains(refusal(Optimize<A>{.lr = nan}), "lr is nan"));
  CHECK(contains(refusal(Optimize<A>{.lr = HUGE_VAL}), "lr is inf"));
  CHECK(contains(refusal(Optimize<A>{.beta1 = 1.0}), "beta1 is 1"));
  CHECK(contains(refusal(Optimize<A>{.beta1 = -0.1}), "beta1 is -0.1"));
  CHECK(contains(refusal(Optimize<A>{.beta2 = 1.5}), "beta2 is 1.5"));
  CHECK(contains(refusal(Optimize<A>{.eps = -1e-3}), "eps is -0.001"));
  CHECK(contains(refusal(Optimize<A>{.weight_decay = -0.5}), "weight_decay is -0.5"));
}

}  // namespace frugal_test::policy_optimize_adam
