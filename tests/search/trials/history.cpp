// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/trials/history.hpp>

#include <limits>

namespace frugal_test::search_history {

using namespace frugal;

constexpr double infinite = std::numeric_limits<double>::infinity();

TEST_CASE("a trial's state follows from its rungs") {
  SearchTrial trial;
  CHECK(trial.is_open());
  CHECK(!trial.is_over());
  CHECK(trial.values(2) == ObjectiveValues{infinite, infinite});
  trial.rungs.push_back({.steps = 3, .seconds = 10, .values = {0.5, -2}});
  CHECK(!trial.is_open());
  CHECK(trial.values(2) == ObjectiveValues{0.5, -2});
  trial.opened = 2;
  CHECK(trial.is_open());
  trial.state = TrialState::pruned;
  CHECK(trial.is_over());
  CHECK(!trial.is_open());
  CHECK(trial.values(2) == ObjectiveValues{0.5, -2});
  trial.state = TrialState::failed;
  CHECK(trial.values(2) == ObjectiveValues{infinite, infinite});
}

TEST_CASE("the seconds of a trial are those of its newest rung, and of attempts since") {
  SearchTrial trial{.spent_seconds = 4};
  CHECK(trial.seconds() == 4);
  trial.rungs = {{.seconds = 10}, {.seconds = 25}};
  CHECK(trial.seconds() == 29);
}

TEST_CASE("the first trials of a history are all of a shorter one") {
  SearchHistory const history{.trials = {{.seed = 1}, {.seed = 2}, {.seed = 3}}};
  CHECK(history.first(0).trials.empty());
  REQUIRE(history.first(2).trials.size() == 2);
  CHECK(history.first(2).trials[1].seed == 2);
  CHECK(history.first(9).trials.size() == 3);
}

TEST_CASE("an objective that is maximised is minimised by its negative, and back") {
  SearchObjective const most{.name = "accuracy", .maximise = true}, least{};
  CHECK(least.name == "loss");
  CHECK(least.to_minimise(0.25) == 0.25);
  CHECK(most.to_minimise(0.25) == -0.25);
  CHECK(most.to_minimise(most.to_minimise(0.25)) == 0.25);
}

}  // namespace frugal_test::search_history
