// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/forecast.hpp>
#include <frugal/search/schedule/asha.hpp>
#include <frugal/search/schedule/median_stop.hpp>
#include <frugal/search/schedule/successive_halving.hpp>

namespace frugal_test::search_forecast {

using namespace frugal;

TEST_CASE("successive halving costs what its bracket says, whatever comes") {
  auto const schedule = SuccessiveHalving<>{.trials = 27, .least = 3}.bind({.horizon = 81});
  SearchForecast const found = forecast(*schedule, {}, 1, {.count = 3, .seeds = 3});
  REQUIRE(found.rows.size() == 4);
  CHECK(found.rows[1].worst == 9);
  CHECK(found.rows[1].expected == doctest::Approx(9));
  // One trial comes to the end, and is repeated twice.
  CHECK(found.worst == 27 * 3 + 9 * 6 + 3 * 18 + 54 + 2 * 81);
  CHECK(found.expected == doctest::Approx(found.worst));
  CHECK(found.whole == 27 * 81);
  CHECK(found.complete == 1);
  CHECK(found.finalists == 1);
  CHECK(found.repeats == 2 * 81);
  CHECK(forecast(*schedule, {}, 1, {.count = 3, .seeds = 1}).finalists == 0);
}

TEST_CASE("the worst case of Asha promotes each new trial, the expected one a third") {
  auto const schedule = Asha<>{.trials = 90, .least = 9}.bind({.horizon = 81});
  SearchForecast const found = forecast(*schedule, {}, 1, {.count = 0});
  CHECK(found.rows[0].worst == 90);
  CHECK(found.rows[1].worst == 88);  // not the first two
  CHECK(found.rows[1].expected > 30);
  CHECK(found.rows[1].expected < 42);
  CHECK(found.expected < 0.6 * found.worst);
}

TEST_CASE("a budget ends the forecast of a schedule that does not plan for it") {
  auto const schedule = MedianStop{.trials = 64}.bind({.horizon = 100, .budget = 1000});
  SearchForecast const found = forecast(*schedule, 1000, 1, {.count = 0});
  CHECK(found.worst <= 1000);
  CHECK(found.expected <= 1000);
  CHECK(found.expected > 900);
}

}  // namespace frugal_test::search_forecast
