// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/run/learning_rate.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::run_learning_rate {

using frugal::Counters;
using frugal::LearningRate;

TEST_CASE("a factor of the learning rate is finite and 0 or more") {
  LearningRate rate;
  for (double const factor : {0.0, 0.5, 2.0}) {
    rate.set_factor(factor, Counters{});
    CHECK(rate.factor() == factor);
  }
}

TEST_CASE("another factor is refused with the step that would use it, and the old one stays") {
  LearningRate rate;
  rate.set_factor(0.25, Counters{});
  Counters at;
  at.epoch = 2;
  at.step = 40;
  double const infinity = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, std::string>> const factors{
      {-0.5, " -0.5"},
      {infinity, " inf"},
      {-infinity, " -inf"},
      {std::numeric_limits<double>::quiet_NaN(), " nan"}};
  for (auto const& [factor, text] : factors) {
    try {
      rate.set_factor(factor, at);
      FAIL("no error came");
    } catch (frugal::SettingsError const& error) {
      CHECK(error.fault().what == "the learning rate would be multiplied by" + text);
      CHECK(error.fault().where == "epoch 2, before step 40");
    }
  }
  CHECK(rate.factor() == 0.25);
  CHECK_THROWS_WITH_AS(rate.set_scale(-1, at),
                       doctest::Contains("a scale must be finite and 0 or more"),
                       frugal::SettingsError);
  CHECK(rate.scale() == 1);
}

TEST_CASE("the rate of the first group is its own times factor and scale, and is not saved") {
  LearningRate rate;
  CHECK_FALSE(rate.first());
  rate.set_groups({{.name = "head", .own = 0.5}});
  rate.set_factor(0.25, Counters{});
  rate.set_scale(0.5, Counters{});
  CHECK(rate.factor() == 0.125);
  CHECK(rate.first() == 0.0625);
  CHECK(rate.each().empty());
  rate.set_groups({{.name = "head", .own = 0.5}, {.name = "body", .own = 2}});
  rate.set_group_factor(1, 0.5);
  CHECK(rate.first() == 0.0625);
  CHECK(rate.each() ==
        std::vector<std::pair<std::string, double>>{{"head", 0.0625}, {"body", 0.125}});
  std::string names;
  auto const archive = [&](char const* name, double) { names += std::string(name) + " "; };
  rate.persist(archive);
  CHECK(names == "factor scale ");
}

}  // namespace frugal_test::run_learning_rate
