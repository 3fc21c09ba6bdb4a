// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/over_seeds.hpp>

#include "support/search_synthetic.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace frugal_test::search_over_seeds {

using frugal::finalists_over_seeds;
using frugal::over_seeds;
using frugal::OverSeeds;
using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::SeedSpread;
using frugal::TrialState;

/// Trials 0 and 1, and repeats of both.
SearchResults results(bool maximise) {
  SearchResults made{.domain = {.recipes = {"SGD"}}, .rungs = {{10}}};
  made.objectives = {{.name = "score", .maximise = maximise}};
  double const sign = maximise ? -1 : 1;
  auto const add = [&](double value, std::optional<std::size_t> repeats, TrialState state) {
    SearchTrial trial{.repeats = repeats, .state = state};
    trial.rungs.push_back({.steps = 10, .values = {sign * value}});
    made.history.trials.push_back(trial);
  };
  add(1, std::nullopt, TrialState::complete);
  add(2, std::nullopt, TrialState::complete);
  add(4, 0, TrialState::complete);
  add(6, 0, TrialState::complete);
  add(8, 0, TrialState::complete);
  add(3, 1, TrialState::complete);
  add(100, 1, TrialState::failed);
  add(100, 1, TrialState::pruned);
  add(100, 1, TrialState::running);
  add(std::nan(""), 1, TrialState::complete);
  add(7, std::nullopt, TrialState::complete);
  return made;
}

TEST_CASE("a mean is of fresh seeds alone, and the spread is divided by n - 1") {
  OverSeeds const of = over_seeds(results(false), 0);
  CHECK(of.repeats == std::vector<std::size_t>{2, 3, 4});
  auto const& known = of.objectives.front();
  CHECK(known.own == 1);
  CHECK(known.fresh->count == 3);
  CHECK(known.fresh->mean == doctest::Approx(6));
  CHECK(*known.fresh->deviation == doctest::Approx(2));
  CHECK(*known.fresh->error() == doctest::Approx(2 / std::sqrt(3.0)));
  CHECK(known.all->count == 4);
  CHECK(known.all->mean == doctest::Approx(4.75));
  CHECK(*known.flattered_by == doctest::Approx(5));
  CHECK(of.running == 0);
  CHECK(of.lost == 0);
}

TEST_CASE("where more is better, a higher mean is no flattery") {
  auto const known = over_seeds(results(true), 0).objectives.front();
  CHECK(known.fresh->mean == doctest::Approx(6));
  CHECK(*known.flattered_by == doctest::Approx(-5));
}

TEST_CASE("repeats that have no value at the end do not count, and are counted") {
  OverSeeds const of = over_seeds(results(false), 1);
  CHECK(of.objectives.front().fresh->count == 1);
  CHECK(of.objectives.front().fresh->mean == 3);
  CHECK(!of.objectives.front().fresh->deviation);
  CHECK(!of.objectives.front().fresh->error());
  CHECK(of.running == 1);
  CHECK(of.lost == 3);
}

TEST_CASE("finalists are those with repeats, the best mean first") {
  auto const numbers = [](std::vector<OverSeeds> const& of) {
    std::vector<std::size_t> all;
    for (OverSeeds const& each : of) all.push_back(each.trial);
    return all;
  };
  CHECK(numbers(finalists_over_seeds(results(false))) == std::vector<std::size_t>{1, 0});
  CHECK(numbers(finalists_over_seeds(results(true))) == std::vector<std::size_t>{0, 1});
  CHECK(finalists_over_seeds(synthetic::search(12, 1, true)).empty());
  OverSeeds const alone = over_seeds(results(false), 10);
  CHECK(alone.repeats.empty());
  CHECK(!alone.objectives.front().fresh);
  CHECK(!alone.objectives.front().flattered_by);
  CHECK(alone.objectives.front().all->mean == 7);
}

TEST_CASE("the sentence says how far to trust the search's own value") {
  SearchResults const of = results(false);
  CHECK(frugal::detail::flattery_text(of, over_seeds(of, 0)) ==
        "Its score in the search is 5 better than the mean of 3 other seeds (standard error 1.2): "
        "expect "
        "the mean.");
  SearchResults const more = results(true);
  CHECK(frugal::detail::flattery_text(more, over_seeds(more, 1)) ==
        "Its score in the search is 1 worse than the mean of 1 other seed.");
  CHECK(frugal::detail::flattery_text(of, over_seeds(of, 10)).empty());
  CHECK(frugal::detail::seed_spread_text(*SeedSpread::of({4, 6, 8})) == "6 +- 2");
  CHECK(frugal::detail::seed_spread_text(*SeedSpread::of({0.12345678})) == "0.1235");
  CHECK(!SeedSpread::of({}));
}

}  // namespace frugal_test::search_over_seeds
