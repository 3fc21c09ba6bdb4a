// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/trials/history.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace frugal_test::search_history {

using namespace frugal;
using frugal::detail::trial_warnings;

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

/// A trial with two rungs of which the meter has billed the second one alone, and one that has failed at once.
SearchHistory history() {
  SearchHistory made;
  made.trials = {{.rungs = {{.seconds = 10}, {.seconds = 50, .dollars = 5}}, .spent_seconds = 2},
                 {.spent_seconds = 30}};
  return made;
}

TEST_CASE("the price of a second is the one given, or the mean of what was billed") {
  CHECK(dollars_per_second(history(), 7200) == 2);
  CHECK(*dollars_per_second(history(), {}) == doctest::Approx(0.1));
  CHECK(!dollars_per_second({}, {}));
  SearchHistory unbilled = history();
  unbilled.trials[0].rungs[1].dollars.reset();
  CHECK(!dollars_per_second(unbilled, {}));
  // Mean over the trials' time, and not of their rates.
  SearchHistory both = history();
  both.trials.push_back({.rungs = {{.seconds = 150, .dollars = 35}}});
  CHECK(*dollars_per_second(both, {}) == doctest::Approx(0.2));
}

TEST_CASE("a recorded cost is taken as it is, and time without one by the price") {
  SearchHistory const of = history();
  CHECK(*dollars_until(of.trials[0], 0, 0.1) == doctest::Approx(1));
  CHECK(*dollars_until(of.trials[0], 1, 0.5) == 5);
  CHECK(*dollars_until(of.trials[0], 1, {}) == 5);
  CHECK(!dollars_until(of.trials[0], 0, {}));
  CHECK(*dollars_of(of.trials[0], 0.1) == doctest::Approx(5.2));
  CHECK(*dollars_of(of.trials[1], 0.1) == doctest::Approx(3));
  CHECK(*dollars_of(of, 0.1) == doctest::Approx(8.2));
  CHECK(!dollars_of(of, {}));
  CHECK(*dollars_of(SearchHistory{}, 0.1) == 0);
}

TEST_CASE("each warning is told once, with its trials, and not hundreds of them") {
  SearchHistory history{{{}, {.warnings = {"a", "b"}}, {.warnings = {"a"}}, {.warnings = {"a"}}}};
  CHECK(trial_warnings(history) ==
        std::vector<std::string>{"trial 1 and 2 others: a", "trial 1: b"});
  history.trials.push_back({.warnings = {"c"}});
  CHECK(trial_warnings(history, 1) ==
        std::vector<std::string>{"trial 1 and 2 others: a", "trials have 2 further warnings"});
  CHECK(trial_warnings({}).empty());
}

}  // namespace frugal_test::search_history
