// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/results/results.hpp>

#include "support/search_synthetic.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_results {

using frugal::Candidate;
using frugal::finalists_over_seeds;
using frugal::over_seeds;
using frugal::OverSeeds;
using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::SeedSpread;
using frugal::TrialState;

constexpr double infinite = std::numeric_limits<double>::infinity();

SearchResults two_objectives() {
  SearchResults results{.domain = synthetic::domain(), .rungs = {{100, 400}, {400}}};
  results.objectives = {{.name = "accuracy", .maximise = true}, {.name = "latency"}};
  return results;
}

SearchTrial trial(TrialState state, std::vector<frugal::ObjectiveValues> const& values,
                  std::size_t bracket = 0) {
  SearchTrial made{.candidate = {.recipe = 0, .values = {0.01, 64.0, std::nullopt, 1.0}},
                   .bracket = bracket};
  for (auto const& each : values) {
    made.rungs.push_back({.steps = 100, .samples = 6400, .seconds = 7.5, .values = each});
  }
  made.state = state;
  return made;
}

TEST_CASE("settings are names, whole numbers and the shortest digits") {
  SearchResults const results{.domain = synthetic::domain()};
  Candidate const sgd{.recipe = 1, .values = {0.0031622776601683794, 128.0, 0.9, 2.0}};
  CHECK(results.value_text(sgd, 0) == "0.0031622776601683794");
  CHECK(results.value_text(sgd, 0, 3) == "0.00316");
  CHECK(results.value_text(sgd, 1, 1) == "128");
  CHECK(results.value_text(sgd, 3) == "rms");
  CHECK(results.label(sgd) == "SGD, lr 0.00316, width 128, momentum 0.9, norm rms");
  Candidate const adam{.recipe = 0, .values = {0.1, 16.0, std::nullopt, 0.0}};
  CHECK(results.value_text(adam, 2) == "-");
  CHECK(results.settings_text(adam) == "lr 0.1, width 16, norm none");
  SearchResults const bare{.domain = {.recipes = {"SGD"}}};
  CHECK(bare.label({.recipe = 0}) == "SGD");
}

TEST_CASE("values have their own sign, and a trial without a finite one has none") {
  SearchResults const results = two_objectives();
  SearchTrial const good = trial(TrialState::complete, {{-0.5, 3}, {-0.75, 3.5}});
  CHECK(results.value(good) == 0.75);
  CHECK(results.value(good, 1) == 3.5);
  CHECK(results.value(good, 0, 0) == 0.5);
  CHECK(!results.value(trial(TrialState::failed, {{-0.5, 3}})));
  CHECK(!results.value(trial(TrialState::running, {})));
  CHECK(!results.value(trial(TrialState::complete, {{std::nan(""), 3}})));
  CHECK(!results.value(trial(TrialState::complete, {{infinite, 3}})));
  CHECK(results.value(trial(TrialState::complete, {{infinite, 3}}), 1) == 3);
}

TEST_CASE("seconds, samples and dollars are those of all trials, repeats too") {
  SearchResults results = two_objectives();
  results.history.trials = {trial(TrialState::complete, {{0, 0}}), trial(TrialState::failed, {}),
                            trial(TrialState::complete, {{0, 0}})};
  results.history.trials[2].repeats = 0;
  CHECK(results.seconds() == 15);
  CHECK(results.samples() == 12800);
  CHECK(!results.dollars(results.history.trials[0]));
  results.dollars_per_hour = 4.8;
  CHECK(*results.dollars(results.history.trials[0]) == doctest::Approx(0.01));
  CHECK(*results.dollars(results.history.trials[1]) == 0);
  CHECK(*results.dollars() == doctest::Approx(0.02));
}

TEST_CASE("a CostMeter's bill is the cost, and the mean of its rate that of time without a bill") {
  SearchResults results = two_objectives();
  results.history.trials = {trial(TrialState::complete, {{0, 0}, {0, 0}}),
                            trial(TrialState::failed, {})};
  SearchTrial &billed = results.history.trials[0], &failed = results.history.trials[1];
  billed.rungs[0].dollars = 1;
  billed.rungs[1].dollars = 5;
  billed.rungs[1].seconds = 50;
  failed.spent_seconds = 30;
  CHECK(*results.dollars_per_second() == 0.1);
  CHECK(results.dollars(billed, 0) == 1);
  CHECK(results.dollars(billed) == 5);
  CHECK(*results.dollars(failed) == doctest::Approx(3));
  CHECK(*results.dollars() == doctest::Approx(8));
  // The price is that of time which was not billed.
  results.dollars_per_hour = 3600;
  billed.spent_seconds = 2;
  CHECK(*results.dollars(billed) == doctest::Approx(7));
  CHECK(*results.dollars(failed) == doctest::Approx(30));
}

TEST_CASE("complete trials come first, then those of higher rungs, and failed ones last") {
  SearchResults results = two_objectives();
  results.objectives.resize(1);
  results.history.trials = {
      trial(TrialState::failed, {{-0.99}}),                // 0: last
      trial(TrialState::pruned, {{-0.8}}),                 // 1
      trial(TrialState::complete, {{-0.5}, {-0.6}}),       // 2: second
      trial(TrialState::pruned, {{-0.1}, {-0.2}}),         // 3: fourth, of a higher rung
      trial(TrialState::complete, {{-0.5}, {-0.7}}),       // 4: first
      trial(TrialState::complete, {{0}, {std::nan("")}}),  // 5: the last complete one
      trial(TrialState::running, {}),                      // 6: of no rung
      trial(TrialState::complete, {{-0.9}, {-0.95}}),      // 7: a repeat
      trial(TrialState::pruned, {{-0.05}}, 1),             // 8: of a bracket that begins higher
  };
  results.history.trials[7].repeats = 4;
  CHECK(results.ranked() == std::vector<std::size_t>{4, 2, 5, 3, 8, 1, 6, 0});
}

TEST_CASE("of several objectives the Pareto front comes first") {
  SearchResults results = two_objectives();
  results.history.trials = {trial(TrialState::complete, {{-0.9, 9}, {-0.9, 9}}),
                            trial(TrialState::complete, {{-0.8, 9}, {-0.8, 9}}),  // dominated by 0
                            trial(TrialState::complete, {{-0.5, 1}, {-0.5, 1}}),
                            trial(TrialState::pruned, {{-0.99, 0.1}})};
  CHECK(results.ranked() == std::vector<std::size_t>{0, 2, 1, 3});
}

TEST_CASE("a search of many trials ranks all of them but repeats, once") {
  SearchResults const results = synthetic::search(64);
  results.require();
  auto const ranked = results.ranked();
  CHECK(ranked.size() == 64);
  CHECK(std::set<std::size_t>(ranked.begin(), ranked.end()).size() == 64);
  CHECK(results.history.trials[ranked.front()].state == TrialState::complete);
  CHECK(std::ranges::find(ranked, *results.winner) < ranked.begin() + 4);
  SearchResults const failed = synthetic::search(10, 1, true);
  failed.require();
  CHECK(failed.ranked().size() == 10);
}

TEST_CASE("results that do not fit each other are refused") {
  auto const text = [](std::function<void(SearchResults&)> const& change) {
    SearchResults results = synthetic::search(8);
    results.require();
    change(results);
    try {
      results.require();
    } catch (frugal::SettingsError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::size_t const beyond = 1000;
  CHECK(text([](auto& of) { of.objectives.clear(); }).find("no objective") != std::string::npos);
  CHECK(text([&](auto& of) { of.winner = beyond; }).find("the winner is trial 1000") !=
        std::string::npos);
  CHECK(text([&](auto& of) { of.front = {beyond}; }).find("Pareto front is trial 1000") !=
        std::string::npos);
  CHECK(text([&](auto& of) {
          of.history.trials[0].repeats = beyond;
        }).find("repeated is trial 1000") != std::string::npos);
  CHECK(text([](auto& of) { of.history.trials[1].bracket = 1; }).find("trial 1 has") !=
        std::string::npos);
  CHECK(text([](auto& of) { of.rungs[0].resize(1); }).find("does not have so many rungs") !=
        std::string::npos);
  CHECK(text([](auto& of) {
          of.history.trials[0].candidate.recipe = 3;
        }).find("trial 0 is not of") != std::string::npos);
  CHECK(text([](auto& of) {
          of.objectives.push_back({});
        }).find("has 1 value (the results of a search): the search has 2 objectives") !=
        std::string::npos);
  CHECK(text([&](auto& of) { of.order.emplace_back(0, 9); }).find("rung 9 of trial 0") !=
        std::string::npos);
}

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

}  // namespace frugal_test::search_results

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
