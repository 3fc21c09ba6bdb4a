// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/task.hpp>

#include <cmath>

namespace frugal_test::search_task {

using frugal::RungResult;
using frugal::detail::SearchTask;
using frugal::detail::TaskOutcome;
using Kind = TaskOutcome::Kind;

/// A trial that has ended a rung, and has spent 20 s on the next one since.
SearchTask second_rung(std::optional<double> dollars) {
  SearchTask task{.trial = 4, .rung = 1, .seconds_before = 120};
  task.of.rungs = {
      {.steps = 9, .samples = 72, .seconds = 100, .dollars = dollars, .values = {0.5}}};
  return task;
}

TEST_CASE("a rung that fails keeps the steps of the rung before, and its values are no numbers") {
  TaskOutcome outcome;
  outcome.fail(Kind::failure, "out of memory", second_rung(0.25), 2);
  CHECK(outcome.kind == Kind::failure);
  CHECK(outcome.text == "out of memory");
  CHECK(outcome.result.steps == 9);
  CHECK(outcome.result.samples == 72);
  REQUIRE(outcome.result.values.size() == 2);
  CHECK(std::isnan(outcome.result.values[0]));
  CHECK(!outcome.result.dollars);  // pay() adds them

  TaskOutcome later{.result = {.steps = 20, .samples = 160}};
  later.fail(Kind::error, "no disk", second_rung({}), 1);
  CHECK(later.result.steps == 20);
  CHECK(later.result.samples == 160);
}

TEST_CASE("a trial pays for all of its attempts, those that fail as well") {
  SUBCASE("at a price") {
    TaskOutcome outcome;
    outcome.fail(Kind::failure, "NaN", second_rung(0.1), 1);
    outcome.pay(second_rung(0.1), 60, 3.6);
    CHECK(outcome.seconds == 60);
    CHECK(outcome.result.seconds == 180);
    CHECK(*outcome.result.dollars == doctest::Approx(0.18));
  }
  SUBCASE("at a price, in its first rung") {
    TaskOutcome outcome;
    outcome.pay({.seconds_before = 20}, 60, 3.6);
    CHECK(*outcome.result.dollars == doctest::Approx(0.08));
  }
  SUBCASE("after a rung that CostMeter has measured, at a price of its own") {
    TaskOutcome outcome;
    outcome.pay(second_rung(5), 60, 3.6);
    CHECK(*outcome.result.dollars == doctest::Approx(5 + 0.08));
  }
  SUBCASE("without a price, at the rate that CostMeter has measured before") {
    TaskOutcome outcome;
    outcome.pay(second_rung(5), 60, {});
    CHECK(*outcome.result.dollars == doctest::Approx(5 + 80 * 0.05));
  }
  SUBCASE("CostMeter's own figure is not changed") {
    TaskOutcome outcome{.result = {.dollars = 7}};
    outcome.pay(second_rung(5), 60, 3.6);
    CHECK(outcome.result.dollars == 7);
  }
  SUBCASE("nothing without a price") {
    TaskOutcome outcome;
    outcome.pay(second_rung({}), 60, {});
    CHECK(!outcome.result.dollars);
  }
}

}  // namespace frugal_test::search_task
