// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/sampler/random.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

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
