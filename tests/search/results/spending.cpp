// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/spending.hpp>

#include "support/search_synthetic.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace frugal_test::search_spending {

using frugal::best_over_spending;
using frugal::rung_costs;
using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::share_of_full_training;
using frugal::SpendingPoint;
using frugal::TrialState;

/// Three trials of two rungs, 10 and 40 steps of 2 samples and a second each; trial 3 repeats trial 1.
SearchResults results() {
  SearchResults made{.domain = {.recipes = {"SGD"}}, .rungs = {{10, 40}}};
  auto const add = [&](std::vector<double> const& values, TrialState state) {
    SearchTrial trial{.opened = values.size() > 1 ? 2U : 1U, .state = state};
    std::uint64_t steps = 10;
    for (double const value : values) {
      trial.rungs.push_back({.steps = steps,
                             .samples = 2 * steps,
                             .seconds = static_cast<double>(steps),
                             .values = {value}});
      steps = 40;
    }
    made.history.trials.push_back(trial);
  };
  add({3}, TrialState::pruned);
  add({2, 0.5}, TrialState::complete);
  add({4, std::nan("")}, TrialState::complete);
  add({0.1, 0.2}, TrialState::complete);
  made.history.trials.back().repeats = 1;
  add({}, TrialState::failed);
  return made;
}

TEST_CASE("a rung costs what its trials trained since the rung before") {
  auto const costs = rung_costs(results());
  REQUIRE(costs.size() == 2);
  CHECK(costs[0].budget == 10);
  CHECK(costs[0].trials == 3);
  CHECK(costs[0].promoted == 2);
  CHECK(costs[0].samples == 60);
  CHECK(costs[0].seconds == 30);
  CHECK(costs[0].best == 2);
  CHECK(costs[1].budget == 40);
  CHECK(costs[1].trials == 2);
  CHECK(costs[1].promoted == 0);
  CHECK(costs[1].seconds == 60);
  CHECK(costs[1].best == 0.5);  // NaN is never the best
  auto const repeats = frugal::repeat_cost(results());
  CHECK(repeats.trials == 1);
  CHECK(repeats.samples == 80);
  CHECK(repeats.seconds == 40);
}

TEST_CASE("money is that of the rungs alone, as it was billed or by the price") {
  SearchResults of = results();
  CHECK(!rung_costs(of)[0].dollars);
  CHECK(!frugal::repeat_cost(of).dollars);
  CHECK(!best_over_spending(of).back().dollars);
  of.dollars_per_hour = 3600;
  of.history.trials[1].rungs[0].dollars = 25;
  of.history.trials[1].rungs[1].dollars = 75;
  CHECK(*rung_costs(of)[0].dollars == doctest::Approx(10 + 25 + 10));
  CHECK(*rung_costs(of)[1].dollars == doctest::Approx(50 + 30));
  CHECK(*frugal::repeat_cost(of).dollars == doctest::Approx(40));
  auto const points = best_over_spending(of);
  REQUIRE(points.size() == 4);
  CHECK(*points[0].dollars == doctest::Approx(10));
  CHECK(*points[1].dollars == doctest::Approx(35));
  CHECK(*points[2].dollars == doctest::Approx(95));
  CHECK(*points[3].dollars == doctest::Approx(165));
  CHECK(*of.dollars() == doctest::Approx(165));
}

TEST_CASE("attempts without a result cost, too") {
  SearchResults of = results();
  CHECK(frugal::attempt_cost(of).trials == 0);
  of.history.trials[0].spent_seconds = 7;
  of.history.trials[4].spent_seconds = 11;  // it has failed, and has no rung
  of.history.trials[3].spent_seconds = 2;   // a repeat
  auto const attempts = frugal::attempt_cost(of);
  CHECK(attempts.trials == 2);
  CHECK(attempts.seconds == 18);
  CHECK(!attempts.dollars);
  CHECK(frugal::repeat_cost(of).seconds == 42);
  CHECK(best_over_spending(of).back().seconds == 150);
  double all = attempts.seconds + frugal::repeat_cost(of).seconds;
  for (auto const& each : rung_costs(of)) all += each.seconds;
  CHECK(all == of.seconds());
  of.dollars_per_hour = 7200;
  CHECK(*frugal::attempt_cost(of).dollars == doctest::Approx(36));
  CHECK(*best_over_spending(of).back().dollars == doctest::Approx(300));
}

TEST_CASE("attempts have no cost if all that was billed took no time") {
  SearchResults of{.domain = {.recipes = {"SGD"}}, .rungs = {{10}}};
  SearchTrial trial{.state = TrialState::complete, .spent_seconds = 10};
  trial.rungs.push_back({.steps = 10, .samples = 20, .seconds = 0, .dollars = 5, .values = {1}});
  of.history.trials.push_back(trial);
  CHECK(best_over_spending(of).back().seconds == 10);
  CHECK(!best_over_spending(of).back().dollars);
}

TEST_CASE("a trial without a first result is no part of the share") {
  SearchResults of = results();
  of.history.trials[4].rungs = {{.seconds = 5, .values = {std::nan("")}}};
  CHECK(*share_of_full_training(of) == doctest::Approx(90.0 / 120));
}

TEST_CASE("rungs and repeats together cost what the search has cost") {
  for (std::size_t const objectives : {1U, 2U}) {
    SearchResults const of = synthetic::search(64, objectives);
    double seconds = frugal::repeat_cost(of).seconds;
    std::uint64_t samples = frugal::repeat_cost(of).samples;
    for (auto const& each : rung_costs(of)) seconds += each.seconds, samples += each.samples;
    CHECK(seconds == doctest::Approx(of.seconds()));
    CHECK(samples == of.samples());
  }
}

TEST_CASE("the share is of training each trial up to the highest rung, in the unit of the rungs") {
  SearchResults of = results();
  CHECK(*share_of_full_training(of) == doctest::Approx(90.0 / 120));
  of.unit = "samples";
  of.rungs = {{20, 80}};
  CHECK(*share_of_full_training(of) == doctest::Approx(180.0 / 240));
  of.unit = "seconds";
  of.rungs = {{10, 40}};
  CHECK(*share_of_full_training(of) == doctest::Approx(90.0 / 120));
  of.unit = "dollars";
  CHECK(!share_of_full_training(of));
  of.dollars_per_hour = 3600;
  CHECK(*share_of_full_training(of) == doctest::Approx(90.0 / 120));
  of.unit = "cents";
  of.rungs = {{1000, 4000}};
  CHECK(*share_of_full_training(of) == doctest::Approx(90.0 / 120));
  CHECK(!share_of_full_training(synthetic::search(5, 1, true)));
}

TEST_CASE("the best value falls over what was spent, in the order of the results") {
  SearchResults of = results();
  auto const is = [&](std::vector<std::pair<double, double>> const& expected) {
    std::vector<std::pair<double, double>> found;
    for (SpendingPoint const& each : best_over_spending(of))
      found.emplace_back(each.seconds, each.best);
    CHECK(found == expected);
  };
  // Rung by rung; the repeat, which costs 40 seconds at the end, is no result of the search.
  is({{10, 3}, {20, 2}, {60, 0.5}, {130, 0.5}});
  of.order = {{1, 0}, {1, 1}};
  is({{10, 2}, {40, 0.5}, {130, 0.5}});
  of.objectives.front().maximise = true;
  for (auto& trial : of.history.trials) {
    for (auto& rung : trial.rungs) rung.values[0] *= -1;
  }
  is({{10, 2}, {50, 3}, {60, 4}, {130, 4}});
  CHECK(best_over_spending(synthetic::search(5, 1, true)).empty());
}

}  // namespace frugal_test::search_spending
