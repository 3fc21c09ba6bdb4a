// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/search/horizon.hpp>

#include <string>
#include <vector>

namespace frugal_test::search_horizon_tests {

using namespace frugal;
using namespace frugal::detail;

RunLimits of_steps(std::uint64_t steps, std::uint64_t per_epoch = 1000) {
  return {.steps = steps, .total_steps = steps, .samples_per_epoch = per_epoch};
}
RunLimits of_epochs(std::uint64_t epochs, std::uint64_t per_epoch = 1000) {
  return {.epochs = epochs, .total_steps = epochs * 10, .samples_per_epoch = per_epoch};
}

TEST_CASE("a whole run is as long as the recipes say, in the unit of the rungs") {
  CHECK(search_horizon({}, RungUnit::steps, {of_steps(90), of_steps(90)}) == 90);
  CHECK(search_horizon({}, RungUnit::steps, {of_epochs(3)}) == 30);
  CHECK(search_horizon({}, RungUnit::samples, {of_epochs(3)}) == 3000);
  CHECK(search_horizon({.horizon = 60}, RungUnit::seconds, {of_steps(90)}) == 60);
  CHECK(search_horizon({.dollars_per_hour = 2, .horizon = 60}, RungUnit::cents, {of_steps(90)}) ==
        60);
}

TEST_CASE("a length that is unknown, or not the same for all, is one clear error") {
  auto const refused = [](SearchSettings const& settings, RungUnit unit,
                          std::vector<RunLimits> const& all, char const* text) {
    CHECK_THROWS_WITH_AS(search_horizon(settings, unit, all), doctest::Contains(text),
                         SettingsError);
  };
  refused({}, RungUnit::steps, {{}}, "the length of a whole run is not known");
  refused({}, RungUnit::samples, {of_steps(90)}, "Set Settings::epochs and not steps");
  refused({}, RungUnit::steps, {of_steps(90), of_steps(45)},
          "one recipe trains 90 steps and another one 45");
  refused({}, RungUnit::samples, {of_epochs(3), of_epochs(3, 900)},
          "3000 samples and another one 2700");
  refused({}, RungUnit::seconds, {of_steps(90)}, "Set SearchSettings::horizon");
  refused({.horizon = 0}, RungUnit::seconds, {of_steps(90)}, "Set SearchSettings::horizon");
  refused({.horizon = 60}, RungUnit::cents, {of_steps(90)}, "there is no price");
}

TEST_CASE("a planned budget is in the unit of the rungs, and the finalists' repeats come first") {
  CHECK(planned_budget({.steps = 1000}, RungUnit::steps) == 1000);
  CHECK(planned_budget({.samples = 800}, RungUnit::samples) == 800);
  CHECK(!planned_budget({}, RungUnit::steps));
  CHECK(!planned_budget({.hours = 1}, RungUnit::seconds));
  CHECK_THROWS_WITH_AS(planned_budget({.steps = 1000}, RungUnit::seconds),
                       doctest::Contains("the budget is in steps, and the rungs are in seconds"),
                       SettingsError);
  CHECK_THROWS_AS(planned_budget({.samples = 1000}, RungUnit::steps), SettingsError);
  CHECK(without_repeats(1000, 360, RungUnit::steps) == 640);
  CHECK_THROWS_WITH_AS(without_repeats(360, 360, RungUnit::samples),
                       doctest::Contains("repeats alone take 360"), SettingsError);
}

TEST_CASE("a planned budget pays for one trial to its end") {
  CHECK_NOTHROW(require_complete({.complete = 1}, 90, RungUnit::steps));
  CHECK_THROWS_WITH_AS(require_complete({}, 90, RungUnit::samples),
                       doctest::Contains("the budget is 90 samples"), SettingsError);
}

TEST_CASE("a budget in time or money pays for a first rung in time or money") {
  auto const refused = [](SearchSettings const& settings, RungUnit unit, std::uint64_t first) {
    CHECK_NOTHROW(require_first_rung(settings, unit, first));
    CHECK_THROWS_WITH_AS(require_first_rung(settings, unit, first + 1),
                         doctest::Contains("the first rung of one trial takes"), SettingsError);
  };
  refused({.budget = {.hours = 0.5}}, RungUnit::seconds, 1800);
  refused({.budget = {.dollars = 5}, .dollars_per_hour = 2.5}, RungUnit::seconds, 7200);
  refused({.budget = {.dollars = 5}}, RungUnit::cents, 500);
  refused({.budget = {.hours = 2}, .dollars_per_hour = 2.5}, RungUnit::cents, 500);
  CHECK_NOTHROW(require_first_rung({.budget = {.hours = 1e-9}}, RungUnit::steps, 1000));
  CHECK_NOTHROW(require_first_rung({}, RungUnit::seconds, 1000));
}

}  // namespace frugal_test::search_horizon_tests
