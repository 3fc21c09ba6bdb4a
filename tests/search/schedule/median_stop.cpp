// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/schedule/median_stop.hpp>

#include "support/search_schedules.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::search_median_stop {

using namespace support::search_schedules;
using frugal::MedianStop;
using frugal::SearchHistory;
using frugal::TrialState;

TEST_CASE("it stops the trials that Optuna's MedianPruner prunes") {
  nlohmann::json const all = file().at("median");
  REQUIRE(all.size() == 3);
  std::size_t compared = 0, pruned = 0;
  for (nlohmann::json const& each : all) {
    SearchHistory history;
    for (nlohmann::json const& report : each.at("reports")) {
      std::size_t const number = report.at("trial").get<std::size_t>();
      if (number == history.trials.size()) {
        // The one before has come to its end, unless it was pruned.
        if (number != 0 && !history.trials.back().is_over()) {
          history.trials.back().state = TrialState::complete;
        }
        history.trials.push_back({});
      }
      frugal::SearchTrial& trial = history.trials[number];
      trial.rungs.push_back({.values = {report.at("value").get<double>()}});
      bool const stops =
          frugal::detail::is_below_median(history, trial, each.at("startup").get<std::size_t>());
      CAPTURE(report.dump());
      CHECK(stops == report.at("pruned").get<bool>());
      if (stops) trial.state = TrialState::pruned;
      ++compared;
      pruned += stops ? 1 : 0;
    }
  }
  CHECK(compared > 250);
  CHECK(pruned > 40);
}

TEST_CASE("decisions are at the warm-up and then at each interval, and the end is a whole run") {
  auto const schedule =
      MedianStop{.trials = 3, .warmup = 20, .interval = 30}.bind({.horizon = 100});
  CHECK(schedule->rungs() == std::vector<std::vector<std::uint64_t>>{{20, 50, 80, 100}});
  auto const usual = MedianStop{.trials = 3}.bind({.horizon = 50});
  CHECK(usual->rungs().front().size() == 10);
  CHECK(usual->rungs().front().front() == 5);
}

TEST_CASE("the first trials train in full, and a worse one after them does not") {
  auto const schedule = MedianStop{.trials = 4, .startup = 3}.bind({.horizon = 10});
  Played const played =
      play(*schedule, [](std::size_t trial, std::size_t) { return static_cast<double>(trial); });
  for (std::size_t i = 0; i < 3; ++i) CHECK(played.history.trials[i].rungs.size() == 10);
  CHECK(played.history.trials[3].rungs.size() == 1);
  CHECK(played.history.trials[3].state == TrialState::pruned);
}

TEST_CASE("the median of two is their mean, and NaN is no value") {
  CHECK(frugal::detail::median_of({3, 1}) == 2);
  CHECK(frugal::detail::median_of({3, not_a_number, 1, 7}) == 3);
  CHECK(std::isnan(frugal::detail::median_of({not_a_number})));
}

TEST_CASE("several objectives have no median") {
  CHECK(refusal([] {
          MedianStop{}.bind({.horizon = 10, .objectives = 2});
        }).find("there is no median") != std::string::npos);
}

}  // namespace frugal_test::search_median_stop
