// SPDX-License-Identifier: Apache-2.0
// torch-free, optimised
#include <frugal/search/schedule/successive_halving.hpp>

#include "support/search_schedules.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::search_successive_halving {

using namespace support::search_schedules;
using frugal::Asha;
using frugal::Eta;
using frugal::Hyperband;
using frugal::ObjectiveValues;
using frugal::SearchDecision;
using frugal::SuccessiveHalving;
using frugal::TrialState;

TEST_CASE("brackets of Hyperband are those of the paper's algorithm") {
  nlohmann::json const all = file().at("brackets");
  REQUIRE(all.size() == 8);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.dump());
    auto const brackets = frugal::hyperband(each.at("least").get<std::uint64_t>(),
                                            each.at("most").get<std::uint64_t>(),
                                            each.at("eta").get<std::uint64_t>());
    REQUIRE(brackets.size() == each.at("brackets").size());
    for (std::size_t b = 0; b < brackets.size(); ++b) {
      nlohmann::json const& expected = each.at("brackets")[b];
      REQUIRE(brackets[b].rungs.size() == expected.size());
      for (std::size_t k = 0; k < expected.size(); ++k) {
        CHECK(brackets[b].rungs[k].trials == expected[k][0].get<std::uint64_t>());
        CHECK(brackets[b].rungs[k].budget == expected[k][1].get<std::uint64_t>());
      }
    }
  }
}

TEST_CASE("the best third of a rung goes on, and the others are pruned") {
  auto const schedule = SuccessiveHalving<>{.trials = 9, .least = 1}.bind({.horizon = 9});
  // Trial 4 is best at the first rung and third at the second one.
  Played const played = play(*schedule, [](std::size_t trial, std::size_t rung) {
    double const first[]{9, 2, 8, 7, 1, 6, 5, 3, 4};
    return rung == 0 ? first[trial] : trial == 4 ? 3.0 : static_cast<double>(trial) / 4;
  });
  CHECK(played.created == 9);
  CHECK(played.at_rung(0) == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(played.at_rung(1) == std::vector<std::size_t>{1, 4, 7});
  CHECK(played.at_rung(2) == std::vector<std::size_t>{1});
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(played.history.trials[i].state == (i == 1 ? TrialState::complete : TrialState::pruned));
  }
}

TEST_CASE("equal results go on in the order of their numbers") {
  auto const schedule = SuccessiveHalving<>{.trials = 9, .least = 1}.bind({.horizon = 9});
  Played const played = play(*schedule, [](std::size_t, std::size_t) { return 1.0; });
  CHECK(played.at_rung(1) == std::vector<std::size_t>{0, 1, 2});
  CHECK(played.at_rung(2) == std::vector<std::size_t>{0});
}

TEST_CASE("a trial that fails or ends early frees no place for a worse one") {
  auto const schedule = SuccessiveHalving<>{.trials = 6, .least = 1}.bind({.horizon = 3});
  SUBCASE("failed: the next best goes on") {
    Played const played = play(*schedule, [](std::size_t trial, std::size_t) {
      return trial < 3 ? not_a_number : static_cast<double>(trial);
    });
    CHECK(played.at_rung(1) == std::vector<std::size_t>{3, 4});
  }
  SUBCASE("all that went on failed: the next ones go on in their place") {
    auto const three = SuccessiveHalving<>{.trials = 9, .least = 1}.bind({.horizon = 9});
    Played const played = play(*three, [](std::size_t trial, std::size_t rung) {
      return rung == 1 && trial < 5 ? not_a_number : static_cast<double>(trial);
    });
    CHECK(played.at_rung(1) == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
    CHECK(played.at_rung(2) == std::vector<std::size_t>{5});
    CHECK(played.history.trials[5].state == TrialState::complete);
    CHECK(played.history.trials[6].state == TrialState::pruned);
  }
  SUBCASE("all failed: none goes on") {
    Played const played = play(*schedule, [](std::size_t, std::size_t) { return not_a_number; });
    CHECK(played.at_rung(1).empty());
  }
  SUBCASE("ended: it keeps its place") {
    Played const played = play(
        *schedule, [](std::size_t trial, std::size_t) { return static_cast<double>(trial); },
        [](std::size_t trial) { return trial == 0; });
    CHECK(played.at_rung(1) == std::vector<std::size_t>{1});
    CHECK(played.history.trials[0].state == TrialState::complete);
    CHECK(played.history.trials[1].state == TrialState::complete);
  }
}

TEST_CASE("brackets do not mix, and one with a learning sampler waits for the one before") {
  auto const value = [](std::size_t trial, std::size_t) { return static_cast<double>(trial % 5); };
  auto const schedule = Hyperband<>{.least = 1}.bind({.horizon = 9});
  Played const played = play(*schedule, value);
  CHECK(played.created == 9 + 5 + 3);
  CHECK(schedule->rungs() == std::vector<std::vector<std::uint64_t>>{{1, 3, 9}, {3, 9}, {9}});
  for (std::size_t i = 0; i < 9; ++i) CHECK(played.history.trials[i].bracket == 0);
  for (std::size_t i = 9; i < 14; ++i) CHECK(played.history.trials[i].bracket == 1);

  // Before the first bracket has results:
  frugal::SearchHistory created;
  for (int i = 0; i < 9; ++i) created.trials.push_back({});
  CHECK(schedule->next(created).kind == frugal::SearchDecision::Kind::create);
  CHECK(schedule->next(created).bracket == 1);
  CHECK(schedule->next(created).visible == 9);
  auto const learns = Hyperband<>{.least = 1}.bind({.horizon = 9, .learns = true});
  CHECK(learns->next(created).kind == frugal::SearchDecision::Kind::wait);
}

TEST_CASE("a budget gives the number of trials, and its rungs cost no more") {
  for (std::uint64_t const budget : {81U, 100U, 405U, 1000U, 5000U}) {
    auto const schedule = SuccessiveHalving<>{.least = 1}.bind({.horizon = 81, .budget = budget});
    Played const played =
        play(*schedule, [](std::size_t trial, std::size_t) { return static_cast<double>(trial); });
    CAPTURE(schedule->text());
    CHECK(played.cost <= budget);
    // One trial more would cost more.
    auto const more = frugal::successive_halving(played.created + 1, 1, 81, 3);
    CHECK(more.cost() > budget);
  }
  auto const twice = Hyperband<>{.least = 1, .rounds = 0}.bind({.horizon = 9, .budget = 140});
  CHECK(play(*twice, [](std::size_t, std::size_t) { return 1.0; }).created == 2 * 17);
}

TEST_CASE("budgets and numbers that make no search are refused") {
  CHECK(refusal([] {
          SuccessiveHalving<>{}.bind({.horizon = 81});
        }).find("neither trials nor a budget") != std::string::npos);
  CHECK(refusal([] {
          SuccessiveHalving<>{.least = 1}.bind({.horizon = 81, .budget = 80});
        }).find("takes 81 steps") != std::string::npos);
  CHECK(refusal([] {
          SuccessiveHalving<>{.trials = 9, .least = 1}.bind({.horizon = 9, .budget = 20});
        }).find("takes 21 steps") != std::string::npos);
  CHECK(refusal([] {
          SuccessiveHalving<>{.trials = 9, .least = 100}.bind({.horizon = 9});
        }).find("the least budget is 100") != std::string::npos);
  CHECK(refusal([] {
          SuccessiveHalving<>{.trials = 9}.bind({.horizon = 9, .generation = 50});
        }).find("generations of 50") != std::string::npos);
}

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

}  // namespace frugal_test::search_successive_halving
