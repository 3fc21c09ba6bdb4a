// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <string>

#include <frugal/search/forecast.hpp>
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

TEST_CASE("the text says whether decisions are the same on every machine") {
  auto const text = [](auto const& scheduler) {
    auto const schedule = scheduler.bind({.horizon = 81});
    return detail::forecast_text(forecast(*schedule, {}, 1, {}), *schedule, scheduler.unit, "tpe",
                                 true, false, {});
  };
  CHECK(text(SuccessiveHalving<>{.trials = 9}).find("the same for any number of workers") !=
        std::string::npos);
  CHECK(text(SuccessiveHalving<>{.trials = 9, .unit = RungUnit::seconds})
            .find("depend on the machines' speed") != std::string::npos);
  CHECK(text(Asha<>{}).find("depend on the order in which results arrive") != std::string::npos);
  CHECK(text(SuccessiveHalving<>{.trials = 9}).find("The sampler sees no results") !=
        std::string::npos);
  CHECK(text(Asha<>{}).find("The sampler sees results for 63 of 64 trials") != std::string::npos);
  CHECK(text(Asha<>{}).find("cost in the worst case, if no trial fails: ") != std::string::npos);
}

TEST_CASE("rungs, repeats and costs are figures that can be added up") {
  auto const schedule = SuccessiveHalving<>{.trials = 9, .least = 3}.bind({.horizon = 27});
  Finalists const finalists{.count = 2, .seeds = 3};
  std::string const text = detail::forecast_text(forecast(*schedule, {}, 1, finalists), *schedule,
                                                 RungUnit::steps, "random", false, true, finalists);
  CAPTURE(text);
  auto const has = [&](char const* part) { return text.find(part) != std::string::npos; };
  CHECK(has("candidates by random"));
  CHECK(!has("The sampler sees"));
  // Machines do not agree on an objective in time.
  CHECK(has("depend on the machines' speed: an objective or the budget is in time or money"));
  CHECK(has("until steps"));
  // One trial comes to the end, so one is repeated.
  CHECK(has("then 1 finalist with 2 more seeds each"));
  CHECK(
      has("cost in the worst case, if no trial fails: 117 steps, 48.1% of training all its trials "
          "in full"));
  CHECK(has("expected cost: 117 steps, 48.1%"));
}

}  // namespace frugal_test::search_forecast
