// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/run_cost.hpp>

namespace frugal_test::plan_run_cost {

using namespace frugal::plan;
using doctest::Approx;

constexpr RunCost node{.price = PricePerDevice(4), .devices = 8, .hours = 72, .runs = 24};
static_assert(node.per_hour() == Usd(32));
static_assert(node.per_run_hours() == DeviceHours(576));
static_assert(node.per_run() == Usd(2304));
static_assert(node.total() == Usd(55296));
static_assert(RunCost{}.total() == Usd(0));

TEST_CASE("a cost of a run gives the price that it implies") {
  RunCost const run = RunCost::from_total(Usd(37748), 8, 72, 24);
  CHECK(run.price.value() == Approx(65.53).epsilon(1e-3));
  CHECK(run.per_run().value() == Approx(37748));
  CHECK(run.total().value() == Approx(905952));
}

TEST_CASE("what is negative, or without devices, is refused") {
  CHECK_THROWS_AS((RunCost{.price = PricePerDevice(-1)}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS((RunCost{.devices = 0}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS((RunCost{.hours = -1}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS((RunCost{.runs = -1}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS(RunCost::from_total(Usd(1), 0, 1), frugal::SettingsError);
  CHECK_THROWS_WITH_AS(RunCost::from_total(Usd(-1), 8, 1), doctest::Contains("cost of a run"),
                       frugal::SettingsError);
  CHECK(RunCost::from_total(Usd(0), 8, 1).total() == Usd(0));
}

}  // namespace frugal_test::plan_run_cost
