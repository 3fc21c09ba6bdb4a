// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/sampler/sampler.hpp>

#include <limits>
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
