// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/trials/cost.hpp>

namespace frugal_test::search_cost {

using namespace frugal;

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

}  // namespace frugal_test::search_cost
