// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/forecast_text.hpp>
#include <frugal/search/schedule/asha.hpp>
#include <frugal/search/schedule/successive_halving.hpp>

#include <string>

namespace frugal_test::search_forecast_text {

using namespace frugal;

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

}  // namespace frugal_test::search_forecast_text
