// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/sampler/sampler.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace frugal_test::search_sampler {

using namespace frugal;
using namespace frugal::detail;

SearchDomain domain() {
  return {.recipes = {"a", "b"},
          .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                       {.name = "width", .values = Int{4, 8}, .recipes = {1}}}};
}

TEST_CASE("a candidate has the values of its recipe, and no others") {
  SearchDomain const space = domain();
  Draw draw({.index = 0, .seed = 1}, draw_stream("test"));
  for (int i = 0; i < 50; ++i) CHECK(is_candidate_of(space, uniform_candidate(space, draw)));
  Candidate changed{.recipe = 0, .values = {0.5, 6.0}};
  fit_candidate(space, changed, draw);
  CHECK(changed == Candidate{.recipe = 0, .values = {0.5, std::nullopt}});
  changed.recipe = 1;
  fit_candidate(space, changed, draw);
  CHECK(changed.values[0] == 0.5);
  CHECK(is_candidate_of(space, changed));
}

TEST_CASE("a range of one value leaves nothing to choose") {
  CHECK(has_one_value(Uniform{2, 2}));
  CHECK(!has_one_value(Uniform{2, 3}));
  CHECK(has_one_value(LogUniform{2, 2}));
  CHECK(has_one_value(Int{.low = 3, .high = 5, .step = 4}));
  CHECK(!has_one_value(Int{3, 4}));
  CHECK(has_one_value(Choice{{"relu"}}));
}

SearchTrial trial(std::vector<double> const& values, TrialState state = TrialState::running) {
  SearchTrial made{.candidate = {.recipe = 0, .values = {0.5, std::nullopt}}, .state = state};
  std::uint64_t steps = 1;
  for (double const each : values) {
    made.rungs.push_back({.steps = steps *= 3, .values = {each}});
  }
  made.opened = std::max<std::size_t>(values.size(), 1);
  return made;
}

TEST_CASE("samplers learn from results, and not from repeats, failures and other spaces") {
  SearchHistory history;
  history.trials = {
      trial({1}), trial({}), trial({}, TrialState::pruned), trial({1}, TrialState::failed),
      trial({1}), trial({1})};
  history.trials[4].repeats = 0;
  history.trials[5].candidate.values[0] = 7.0;  // out of range
  CHECK(lessons(domain(), history, 9, 99) == std::vector<std::size_t>{0, 2});
  CHECK(lessons(domain(), history, 1, 99) == std::vector<std::size_t>{0});
  CHECK(lessons(domain(), history, 9, 0) == std::vector<std::size_t>{2});
}

TEST_CASE("trials that have come farther are better, and then those with lower values") {
  SearchHistory history;
  history.trials = {trial({1}),
                    trial({5, 4}),
                    trial({2}),
                    trial({9, 8, 7}, TrialState::complete),
                    trial({}, TrialState::pruned),
                    trial({9, 3})};
  CHECK(trials_best_first(history, {0, 1, 2, 3, 4, 5}) ==
        std::vector<std::size_t>{3, 5, 1, 0, 2, 4});
  CHECK(groups_by_progress(history, {0, 1, 2, 3, 4, 5}) ==
        std::vector<std::vector<std::size_t>>{{3}, {1, 5}, {0, 2}, {4}});
}

TEST_CASE("values that are no numbers are the worst ones") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  SearchHistory const history{.trials = {trial({nan}), trial({2})}};
  CHECK(trials_best_first(history, {0, 1}) == std::vector<std::size_t>{1, 0});
  CHECK(objectives_of({.trials = {trial({})}}) == 1);
}

TEST_CASE("settings out of range are errors with both numbers") {
  CHECK_NOTHROW(require_least("tpe", "startup", 1, 1, "why"));
  CHECK_THROWS_WITH_AS(require_least("tpe", "startup", 0, 1, "why"),
                       doctest::Contains("startup is 0"), SettingsError);
  CHECK_NOTHROW(require_probability("nsga2", "swap", 1));
  CHECK_THROWS_AS(require_probability("nsga2", "swap", 1.5), SettingsError);
  CHECK_THROWS_AS(require_probability("nsga2", "swap", std::numeric_limits<double>::quiet_NaN()),
                  SettingsError);
}

}  // namespace frugal_test::search_sampler

namespace frugal_test::search_random_sampler {

using frugal::Candidate;
using frugal::Choice;
using frugal::Int;
using frugal::LogUniform;
using frugal::RandomSampler;
using frugal::SearchDomain;
using frugal::Uniform;

SearchDomain domain() {
  return {.recipes = {"a", "b", "c"},
          .settings = {{.name = "rate", .values = LogUniform{1e-4, 1e-1}},
                       {.name = "depth", .values = Int{.low = 1, .high = 4}, .recipes = {1, 2}},
                       {.name = "act", .values = Choice{{"relu", "gelu"}}, .recipes = {2}}}};
}

TEST_CASE("each recipe is as likely, and each value of its settings") {
  std::map<std::size_t, int> recipes;
  std::map<double, int> depths, acts;
  int low = 0;
  constexpr int count = 6000;
  for (std::size_t trial = 0; trial < count; ++trial) {
    Candidate const found = RandomSampler{}.suggest(domain(), {}, trial, 7);
    REQUIRE(frugal::is_candidate_of(domain(), found));
    ++recipes[found.recipe];
    low += *found.values[0] < 1e-3;
    if (found.values[1]) ++depths[*found.values[1]];
    if (found.values[2]) ++acts[*found.values[2]];
  }
  // Five standard deviations of a count of 2000 of 6000, of 1000 of 4000, and of 1000 of 2000.
  for (auto const& [recipe, times] : recipes) CHECK(std::abs(times - 2000) < 183);
  CHECK(depths.size() == 4);
  for (auto const& [depth, times] : depths) CHECK(std::abs(times - 1000) < 190);
  for (auto const& [act, times] : acts) CHECK(std::abs(times - 1000) < 160);
  CHECK(std::abs(low - 2000) < 183);  // one decade of three
}

TEST_CASE("a candidate depends on the seed and the trial, and on no history") {
  auto const at = [](std::size_t trial, std::uint64_t seed) {
    return RandomSampler{}.suggest(domain(), {}, trial, seed);
  };
  CHECK(at(3, 1) == at(3, 1));
  CHECK(at(3, 1).values[0] != at(4, 1).values[0]);
  CHECK(at(3, 1).values[0] != at(3, 2).values[0]);
  frugal::SearchHistory seen;
  seen.trials.push_back({.candidate = at(0, 1), .rungs = {{.values = {0.5}}}});
  CHECK(RandomSampler{}.suggest(domain(), seen, 3, 1) == at(3, 1));
  CHECK(RandomSampler{}.generation() == 0);
}

TEST_CASE("a changed recipe loses the settings of the old one, and gains its own") {
  frugal::Draw draw({.seed = 1});
  Candidate candidate = frugal::uniform_candidate(domain(), draw);
  candidate.recipe = 2;
  candidate.values = {0.01, 3, {}};
  frugal::fit_candidate(domain(), candidate, draw);
  CHECK(frugal::is_candidate_of(domain(), candidate));
  CHECK(candidate.values[0] == 0.01);
  CHECK(candidate.values[1] == 3);
  candidate.recipe = 0;
  frugal::fit_candidate(domain(), candidate, draw);
  CHECK(candidate.values == std::vector<std::optional<double>>{0.01, {}, {}});
}

TEST_CASE("the best trials are the farthest, then the smallest or the first fronts") {
  using frugal::TrialState;
  frugal::SearchHistory seen;
  auto const add = [&](std::vector<double> values, std::size_t rungs, TrialState state) {
    frugal::SearchTrial& trial = seen.trials.emplace_back();
    trial.candidate.values = {0.01, {}, {}};
    trial.opened = rungs;
    for (std::size_t i = 0; i < rungs; ++i)
      trial.rungs.push_back({.steps = 10 * (i + 1), .values = values});
    trial.state = state;
  };
  double const nan = std::numeric_limits<double>::quiet_NaN();
  add({3}, 3, TrialState::complete);
  add({1}, 1, TrialState::pruned);
  add({nan}, 3, TrialState::complete);
  add({2}, 2, TrialState::running);
  add({0}, 0, TrialState::running);  // has no result yet
  add({0}, 3, TrialState::failed);
  add({2}, 3, TrialState::complete);
  add({0}, 3, TrialState::complete);
  seen.trials.back().repeats = 6;
  add({0}, 0, TrialState::pruned);
  add({5}, 1, TrialState::running);
  seen.trials.back().ended = true;
  seen.trials.back().opened = 2;
  std::vector<std::size_t> const lessons = frugal::detail::lessons(domain(), seen, 100, 100);
  CHECK(lessons == std::vector<std::size_t>{0, 1, 2, 3, 6, 8, 9});
  CHECK(frugal::detail::lessons(domain(), seen, 4, 2) == std::vector<std::size_t>{0, 1, 3});
  seen.trials[1].candidate.values[2] = 1;  // recipe 0 does not have it
  CHECK(frugal::detail::lessons(domain(), seen, 4, 2) == std::vector<std::size_t>{0, 3});
  CHECK(frugal::detail::trials_best_first(seen, lessons) ==
        std::vector<std::size_t>{6, 0, 2, 3, 9, 1, 8});
  // A rung of another bracket that ends after as many steps is in the same group as trial 3's.
  add({1.5}, 1, TrialState::pruned);
  seen.trials.back().bracket = 1;
  seen.trials.back().rungs.back().steps = 20;
  CHECK(frugal::detail::trials_best_first(seen, {0, 1, 3, 10}) ==
        std::vector<std::size_t>{0, 10, 3, 1});
  // With rungs in samples, steps say how large the batches are.
  seen.trials[1].rungs.back().samples = seen.trials[9].rungs.back().samples = 100;
  seen.trials[9].ended = false;
  seen.trials[9].rungs.back().steps = 300;
  seen.trials[3].rungs.back().samples = seen.trials[10].rungs.back().samples = 200;
  CHECK(frugal::detail::trials_best_first(seen, {0, 1, 3, 9, 10}) ==
        std::vector<std::size_t>{0, 10, 3, 1, 9});
  // Fronts {0, 1, 2, 3} and {4}; trial 2 is closer to its neighbours than trial 1.
  seen.trials.clear();
  add({0, 10}, 1, TrialState::complete);
  add({4, 4}, 1, TrialState::complete);
  add({9, 3}, 1, TrialState::complete);
  add({10, 0}, 1, TrialState::complete);
  add({20, 20}, 1, TrialState::complete);
  CHECK(frugal::detail::trials_best_first(seen, {4, 3, 2, 1, 0}) ==
        std::vector<std::size_t>{0, 3, 1, 2, 4});
}

}  // namespace frugal_test::search_random_sampler
