// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/trials/finalists.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace frugal_test::search_finalists {

using namespace frugal;

SearchTrial trial(double value, TrialState state = TrialState::complete,
                  std::optional<std::size_t> repeats = std::nullopt) {
  return {.candidate = {.recipe = 0, .values = {value}},
          .repeats = repeats,
          .rungs = {{.values = {value}}},
          .state = state};
}

TEST_CASE("the best complete trials are repeated with the seeds after that of the search") {
  SearchHistory history{{trial(3), trial(1), trial(0, TrialState::pruned), trial(2)}};
  CHECK(complete_trials(history) == std::vector<std::size_t>{1, 3, 0});
  auto const missing = missing_repeats(history, {.count = 2, .seeds = 3}, 40);
  REQUIRE(missing.size() == 4);
  CHECK(missing[0].repeats == 1);
  CHECK(missing[0].seed == 41);
  CHECK(missing[1].seed == 42);
  CHECK(missing[2].repeats == 3);
  CHECK(missing[3].candidate == history.trials[3].candidate);
  history.trials.push_back(missing[0]);
  CHECK(missing_repeats(history, {.count = 2, .seeds = 3}, 40).size() == 3);
  CHECK(missing_repeats(history, {.count = 0, .seeds = 3}, 40).empty());
  CHECK(missing_repeats(history, {.count = 2, .seeds = 1}, 40).empty());
}

TEST_CASE("the winner is the best by the mean over seeds, and not the one with a lucky seed") {
  SearchHistory history{{trial(1.0), trial(1.1), trial(0.5, TrialState::failed)}};
  CHECK(winner_of(history) == 0);
  history.trials.push_back(trial(1.6, TrialState::complete, 0));
  history.trials.push_back(trial(1.2, TrialState::complete, 1));
  CHECK(mean_over_seeds(history, 0, 9)[0] == doctest::Approx(1.3));
  CHECK(winner_of(history) == 1);
  // A repeat that fails counts as infinitely bad.
  history.trials.push_back(trial(1.0, TrialState::failed, 1));
  CHECK(winner_of(history) == 0);
}

TEST_CASE("a repeat that has no result yet decides nothing, for itself or against others") {
  SearchHistory history{{trial(1.0), trial(1.1)}};
  history.trials.push_back(trial(1.3, TrialState::complete, 0));
  history.trials.push_back({.repeats = 0});
  history.trials.push_back({.repeats = 1});
  // The mean of trial 0 is 1.15, and no other seed has confirmed trial 1.
  CHECK(mean_over_seeds(history, 0, 2)[0] == doctest::Approx(1.15));
  CHECK(winner_of(history) == 0);
  // With a repeat of each there is one to compare, and the second one of trial 1 does not count.
  history.trials.push_back(trial(1.1, TrialState::complete, 1));
  CHECK(winner_of(history) == 1);
  history.trials.push_back(trial(9, TrialState::complete, 1));
  CHECK(winner_of(history) == 1);
  CHECK(ended_repeats_of(history, 1) == std::vector<std::size_t>{5, 6});
}

TEST_CASE("of several objectives there is no winner but by the one that is named") {
  auto const two = [](double one, double other, std::optional<std::size_t> repeats = std::nullopt) {
    return SearchTrial{.candidate = {},
                       .repeats = repeats,
                       .rungs = {{.values = {one, other}}},
                       .state = TrialState::complete};
  };
  SearchHistory history{{two(1, 9), two(2, 2), two(2, 1), two(9, 1)}};
  CHECK(!winner_of(history));
  CHECK(winner_of(history, 0) == 0);
  // Of equal ones that on the front.
  CHECK(winner_of(history, 1) == 2);
  CHECK(missing_repeats(history, {.count = 1, .seeds = 2}, 40, 1)[0].repeats == 2);
  history.trials.push_back(two(1, 5, 2));
  history.trials.push_back(two(9, 2, 3));
  CHECK(winner_of(history, 1) == 3);
}

TEST_CASE("without a complete trial there is no winner") {
  CHECK(!winner_of({}));
  CHECK(!winner_of({{trial(1, TrialState::failed), trial(1, TrialState::pruned)}}));
}

TEST_CASE("a front has the complete trials that no other one is better than in everything") {
  auto const two = [](double one, double other, TrialState state) {
    return SearchTrial{.candidate = {}, .rungs = {{.values = {one, other}}}, .state = state};
  };
  CHECK(front_of({{two(1, 4, TrialState::complete), two(2, 5, TrialState::complete),
                   two(3, 1, TrialState::complete), two(0, 0, TrialState::pruned)}}) ==
        std::vector<std::size_t>{0, 2});
}

}  // namespace frugal_test::search_finalists
