// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/schedule/asha.hpp>

#include "support/search_schedules.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::search_asha {

using namespace support::search_schedules;
using frugal::Asha;
using frugal::Eta;
using frugal::ObjectiveValues;
using frugal::SearchDecision;

TEST_CASE("what goes on at once is what Optuna does not prune, once a rung has eta results") {
  // Before that Optuna lets the best one go on, because it cannot come back to a trial later.
  nlohmann::json const all = file().at("asha");
  REQUIRE(all.size() == 3);
  std::size_t compared = 0, pruned = 0;
  for (nlohmann::json const& each : all) {
    std::size_t const eta = each.at("eta").get<std::size_t>();
    std::map<std::size_t, std::vector<ObjectiveValues>> at_rung;
    for (nlohmann::json const& report : each.at("reports")) {
      auto& results = at_rung[report.at("rung").get<std::size_t>()];
      results.push_back({report.at("value").get<double>()});
      if (results.size() < eta) continue;
      std::vector<std::size_t> const chosen = frugal::detail::promotable(results, eta);
      bool const goes_on = std::ranges::count(chosen, results.size() - 1) != 0;
      CAPTURE(report.dump());
      CHECK(goes_on != report.at("pruned").get<bool>());
      ++compared;
      pruned += goes_on ? 0 : 1;
    }
  }
  CHECK(compared > 150);
  CHECK(pruned > 50);
  CHECK(pruned < compared - 50);
}

TEST_CASE("a paused trial goes on when enough others have come to its rung") {
  auto const schedule = Asha<>{.trials = 4, .least = 1}.bind({.horizon = 3});
  CHECK(schedule->rungs() == std::vector<std::vector<std::uint64_t>>{{1, 3}});
  Played const played = play(*schedule, [](std::size_t trial, std::size_t) {
    double const values[]{2, 1, 3, 4};
    return values[trial];
  });
  // Trial 1 is the best of three after the third one.
  CHECK(played.trained ==
        std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {1, 0}, {2, 0}, {1, 1}, {3, 0}});
  CHECK(played.history.trials[0].state == frugal::TrialState::pruned);
  CHECK(played.history.trials[1].state == frugal::TrialState::complete);
}

TEST_CASE("it depends on the order of arrival, and a replay of that order decides alike") {
  auto const schedule = Asha<Eta<2>>{.trials = 40, .least = 1}.bind({.horizon = 16});
  CHECK(!schedule->is_deterministic());
  auto const forward = play(*schedule, [](std::size_t trial, std::size_t) {
    return static_cast<double>(trial * 7 % 40);
  });
  auto const again = play(*schedule, [](std::size_t trial, std::size_t) {
    return static_cast<double>(trial * 7 % 40);
  });
  CHECK(forward.trained == again.trained);
  CHECK(forward.at_rung(4).size() >= 2);
  // The best of all is never paused for long.
  CHECK(forward.history.trials[0].rungs.size() == 5);
}

TEST_CASE("a few trials have a result all the same: the best one goes to the end") {
  for (std::uint64_t const trials : {1U, 2U, 9U}) {
    auto const schedule = Asha<>{.trials = trials, .least = 1}.bind({.horizon = 81});
    Played const played =
        play(*schedule, [](std::size_t trial, std::size_t) { return static_cast<double>(trial); });
    CHECK(played.history.trials[0].state == frugal::TrialState::complete);
    CHECK(played.at_rung(4).size() == 1);
  }
  CHECK(refusal([] {
          Asha<>{.least = 1}.bind({.horizon = 81, .budget = 80});
        }).find("takes 81 steps") != std::string::npos);
}

TEST_CASE("results that are not finite go nowhere") {
  auto const schedule = Asha<>{.trials = 12, .least = 1}.bind({.horizon = 9});
  Played const played = play(*schedule, [](std::size_t trial, std::size_t) {
    return trial % 2 == 0 ? not_a_number : static_cast<double>(trial);
  });
  for (std::size_t const each : played.at_rung(1)) CHECK(each % 2 == 1);
  CHECK(!played.at_rung(1).empty());
}

}  // namespace frugal_test::search_asha
