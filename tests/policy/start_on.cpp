// SPDX-License-Identifier: Apache-2.0
// StartOn without another device; tests/device has one.
#include <doctest/doctest.h>

#include <frugal/policy/optimize.hpp>
#include <frugal/policy/start_on.hpp>
#include <frugal/trainer.hpp>

#include "support/running.hpp"

namespace frugal_test::policy_start_on {

using namespace frugal_test::support;
using frugal::Cpu;
using frugal::Epochs;
using frugal::StartOn;
using frugal::Steps;

TEST_CASE("the early phase ends after the given epochs, or steps") {
  static_assert(!Epochs<2>::over({.epoch = 1, .step = 900}));
  static_assert(Epochs<2>::over({.epoch = 2}));
  static_assert(!Steps<10>::over({.epoch = 3, .step = 9}));
  static_assert(Steps<10>::over({.step = 10}));
}

TEST_CASE("on the CPU alone Start does nothing, and reports that") {
  auto const fit = [](auto const&... start) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3});
    frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3},
                            frugal::Optimize<frugal::AdamW>{.lr = 1e-2}, start...};
    frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    auto const report = trainer.fit(train);
    return std::pair{report.warnings, tensors_of(*module)};
  };
  auto const [advice, tensors] = fit(StartOn<Cpu>{});
  REQUIRE(advice.size() == 1);
  CHECK(advice[0].find("StartOn<Cpu> does nothing") != std::string::npos);
  CHECK(same_bits(tensors, fit().second));
}

TEST_CASE("Start reports when a pipeline is too small for the device, or too large for the CPU") {
  using frugal::detail::judge_start;
  CHECK(judge_start(0.001, 0.002, 100).find("may as well stay on the CPU") != std::string::npos);
  CHECK(judge_start(0.002, 0.001, 100).empty());
  CHECK(judge_start(0.5, 0.1, 100).find("its 100 steps cost 40 s") != std::string::npos);
}

}  // namespace frugal_test::policy_start_on
