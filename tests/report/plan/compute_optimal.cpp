// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/compute_optimal.hpp>

#include <limits>

namespace frugal_test::plan_compute_optimal {

using namespace frugal::plan;
using doctest::Approx;

static_assert(flops_in(DeviceHours(1), {.peak = 312e12, .utilisation = 0.3}) ==
              312e12 * 0.3 * 3600);
static_assert(Allocation{.parameters = 70e9, .tokens = 1.4e12}.flops() == 5.88e23);

// Hoffmann et al. (2022), table 3: the first approach's parameters, FLOP and tokens.
struct Row {
  double parameters, flops, tokens;
};
constexpr Row table_3[] = {
    {400e6, 1.92e19, 8.0e9},   {1e9, 1.21e20, 20.2e9},   {10e9, 1.23e22, 205.1e9},
    {67e9, 5.76e23, 1.5e12},   {175e9, 3.85e24, 3.7e12}, {280e9, 9.90e24, 5.9e12},
    {520e9, 3.43e25, 11.0e12}, {1e12, 1.27e26, 21.2e12}, {10e12, 1.30e28, 216.2e12}};

TEST_CASE("the rule of 20 is within a tenth of Hoffmann's table, parameters and tokens") {
  for (Row const& row : table_3) {
    Allocation const got = by_tokens_per_parameter(row.flops);
    CAPTURE(row.flops);
    CHECK(got.parameters == Approx(row.parameters).epsilon(0.1));
    CHECK(got.tokens == Approx(row.tokens).epsilon(0.1));
    CHECK(got.flops() == Approx(row.flops).epsilon(1e-12));
    CHECK(got.tokens_per_parameter() == Approx(20));
  }
}

TEST_CASE("the published coefficients give that table's tokens, and 2.7 times its parameters") {
  for (Row const& row : table_3) {
    Allocation const got = compute_optimal(row.flops);
    CAPTURE(row.flops);
    CHECK(got.tokens == Approx(row.tokens).epsilon(0.1));
    CHECK(got.parameters / row.parameters > 2.4);
    CHECK(got.parameters / row.parameters < 3.0);
  }
}

TEST_CASE("the published coefficients multiply to 0.4419 C, and cost 2.65 times their budget") {
  OptimalPlan const plan = optimal_plan(1e21);
  CHECK(plan.fit.parameters * plan.fit.tokens / 1e21 == Approx(0.4419).epsilon(1e-4));
  CHECK(plan.fit_over_budget() == Approx(6 * 0.2536 * 1.7424));
  CHECK(plan.fit_over_budget() == Approx(2.651).epsilon(1e-3));
  CHECK(plan.parameters_ratio() * plan.tokens_ratio() == Approx(plan.fit_over_budget()));
  // By hand: 1e21^0.4995 = 10^10.4895, and 1e21^0.5005 = 10^10.5105.
  CHECK(plan.fit.parameters == Approx(0.2536 * 3.0867e10).epsilon(1e-4));
  CHECK(plan.fit.tokens == Approx(1.7424 * 3.2397e10).epsilon(1e-4));
}

TEST_CASE("more compute gives more of both, and another ratio keeps C = 6ND") {
  Allocation last;
  for (double flops = 1e18; flops < 1e27; flops *= 10) {
    Allocation const got = compute_optimal(flops);
    CHECK(got.parameters > last.parameters);
    CHECK(got.tokens > last.tokens);
    last = got;
    Allocation const rule = by_tokens_per_parameter(flops, 100);
    CHECK(rule.flops() == Approx(flops));
    CHECK(rule.tokens_per_parameter() == Approx(100));
  }
}

TEST_CASE("money buys device-hours, and these compute") {
  Speed const a100{.peak = 312e12, .utilisation = 0.3};
  // $9.83 an hour is the price of a node of eight: $1000 are 813.8 device-hours, not 101.7.
  PricePerDevice const price = per_device(PricePerNode(9.83), 8);
  CHECK((Usd(1000) / price).value() == Approx(813.84).epsilon(1e-4));
  CHECK(flops_for(Usd(1000), price, a100) == Approx(813.84 * 3600 * 93.6e12).epsilon(1e-4));
  CHECK(time_for(flops_in(DeviceHours(17), a100), a100).value() == Approx(17));
  CHECK(flops_for(Usd(0), price, a100) == 0);
}

TEST_CASE("an input out of range is an error that names it") {
  Speed const speed{.peak = 1e12};
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(compute_optimal(-1),
                       "frugal: an input of the plan is out of range (compute): it is -1, and must "
                       "be above 0. Correct the input.",
                       frugal::SettingsError);
  CHECK_THROWS_AS(compute_optimal(nan), frugal::SettingsError);
  CHECK_THROWS_AS(compute_optimal(std::numeric_limits<double>::infinity()), frugal::SettingsError);
  CHECK_THROWS_AS(by_tokens_per_parameter(1e20, 0), frugal::SettingsError);
  CHECK_THROWS_AS(flops_for(Usd(1), PricePerDevice(0), speed), frugal::SettingsError);
  CHECK_THROWS_AS(flops_for(Usd(-1), PricePerDevice(1), speed), frugal::SettingsError);
  CHECK_THROWS_AS(flops_in(DeviceHours(1), {.peak = 1e12, .utilisation = 1.5}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(flops_in(DeviceHours(1), {.peak = 0}), frugal::SettingsError);
}

}  // namespace frugal_test::plan_compute_optimal
