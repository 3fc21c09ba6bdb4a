// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/sampler/evolution.hpp>

#include "support/search_two_samples.hpp"

#include <frugal/search/sampler/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_evolution {

using frugal::Candidate;
using frugal::Choice;
using frugal::Distribution;
using frugal::Draw;
using frugal::Evolution;
using frugal::Int;
using frugal::LogUniform;
using frugal::RandomSampler;
using frugal::SearchDomain;
using frugal::SearchHistory;
using frugal::SearchTrial;
using frugal::TrialState;
using frugal::Uniform;
using frugal::detail::mutated_value;

SearchDomain domain() {
  return {.recipes = {"a", "b", "c"},
          .settings = {{.name = "rate", .values = LogUniform{1e-4, 1e-1}},
                       {.name = "depth", .values = Int{.low = 1, .high = 9}, .recipes = {1, 2}},
                       {.name = "act", .values = Choice{{"relu", "gelu"}}, .recipes = {2}},
                       {.name = "fixed", .values = Int{.low = 3, .high = 3}}}};
}

void add(SearchHistory& to, Candidate candidate, double value) {
  SearchTrial& trial = to.trials.emplace_back();
  trial.candidate = std::move(candidate);
  trial.rungs.push_back({.values = {value}});
  trial.state = TrialState::complete;
}

/// RandomSearch candidates of which trial i has the value `values[i]`.
SearchHistory history(std::vector<double> const& values) {
  SearchHistory seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    add(seen, RandomSampler{}.suggest(domain(), {}, i, 9), values[i]);
  }
  return seen;
}

/// Parameters in which two candidates differ, those of one recipe only left out.
int differences(Candidate const& one, Candidate const& other) {
  int count = one.recipe != other.recipe;
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    bool const both = one.values[i] && other.values[i];
    count += both && *one.values[i] != *other.values[i];
  }
  return count;
}

TEST_CASE("a child is one of the newest trials with one parameter changed") {
  // The first four are the best, and too old.
  SearchHistory const seen = history({0, 0, 0, 0, 5, 4, 3, 2, 1, 9, 8, 7});
  Evolution const evolution{.population = 8, .tournament = 3};
  std::map<std::size_t, int> parents;
  constexpr int count = 4000;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Candidate const child = evolution.suggest(domain(), seen, 12, seed);
    REQUIRE(frugal::is_candidate_of(domain(), child));
    std::vector<std::size_t> near;
    for (std::size_t i = 4; i < 12; ++i) {
      // The rates of two parents are never equal: a child with another rate has all else from its parent.
      Candidate const& parent = seen.trials[i].candidate;
      bool const same_rate = child.values[0] == parent.values[0];
      if (same_rate && differences(child, parent) == 1) near.push_back(i);
    }
    if (near.size() == 1) ++parents[near[0]];
  }
  // The chance that the best one of three draws is the one at place r of 8, times that of another parameter
  // than the rate: one of 2, 3 or 4 parameters, by the recipe.
  std::vector<std::size_t> const order{8, 7, 6, 5, 4, 11, 10, 9};
  for (std::size_t r = 0; r < 8; ++r) {
    CAPTURE(r);
    auto const place = static_cast<double>(r);
    double const chance = (std::pow(8 - place, 3) - std::pow(7 - place, 3)) / 512;
    auto const parameters = 2 + static_cast<double>(seen.trials[order[r]].candidate.recipe);
    double const expected = count * chance * (1 - 1 / parameters);
    CHECK(std::abs(parents[order[r]] - expected) < 4.5 * std::sqrt(expected) + 1);
  }
}

TEST_CASE("candidates are random until the population is full") {
  Evolution const evolution{.population = 8};
  SearchHistory seen = history({1, 2, 3, 4, 5, 6, 7, 8});
  auto const random = [&](SearchHistory const& from) {
    return evolution.suggest(domain(), from, 100, 3) == evolution.suggest(domain(), {}, 100, 3);
  };
  CHECK(random(seen.first(7)));
  CHECK(!random(seen));
  // Failed trials, repeats, and those without results do not count.
  seen.trials[2].state = TrialState::failed;
  CHECK(random(seen));
  seen.trials[2].state = TrialState::running;
  CHECK(!random(seen));
  seen.trials[2].rungs.clear();
  CHECK(random(seen));
  seen.trials[2].state = TrialState::pruned;
  CHECK(!random(seen));
  seen.trials[2].repeats = 0;
  CHECK(random(seen));
}

TEST_CASE("a mutation is another value of the distribution, near or far") {
  std::vector<std::pair<Distribution, double>> const all{
      {Uniform{-2, 6}, 5.9},
      {LogUniform{1e-4, 1}, 1e-4},
      {Int{.low = 8, .high = 64, .step = 8}, 8},
      {Int{.low = 8, .high = 64, .step = 8}, 64},
      {Int{.low = 1, .high = 10, .step = 4}, 5},
      {Int{.low = 1, .high = 100000, .log = true}, 70000},
      {Int{.low = 1, .high = 2, .log = true}, 1},
      {Int{.low = 1, .high = 2, .log = true}, 2},
      {Choice{{"a", "b", "c"}}, 1}};
  for (std::size_t k = 0; k < all.size(); ++k) {
    CAPTURE(k);
    auto const& [of, value] = all[k];
    Draw draw({.index = k});
    int near = 0;
    std::map<double, int> counts;
    for (int i = 0; i < 2000; ++i) {
      double const found = mutated_value(of, value, draw);
      REQUIRE(frugal::has_value(of, found));
      REQUIRE(found != value);
      ++counts[found];
      if (!std::holds_alternative<Choice>(of)) {
        double const distance = std::abs(found - value);
        near += distance <= (k == 0 ? 0.8 : k == 1 ? 1e-4 * 1.52 : k == 5 ? 50000 : 8);
      }
    }
    // A step to the neighbour has a half, and a fresh number may be near too.
    if (k < 6) CHECK(near > 950);
    if (k == 0 || k == 1) CHECK(near < 1300);
    if (k == 0 || k == 1) CHECK(counts.size() == 2000);  // no ends twice
    if (k == 2 || k == 3) CHECK(counts.size() == 7);
    if (k == 8) CHECK((counts.size() == 2 && std::abs(counts[0] - 1000) < 110));
  }
}

/// Values of 8 names each: a candidate is the better the more of them are 3, and recipe 1 needs them all.
SearchDomain names() {
  std::vector<std::string> const eight{"0", "1", "2", "3", "4", "5", "6", "7"};
  SearchDomain all{.recipes = {"a", "b"}};
  for (char const* name : {"p", "q", "r", "s", "t"}) {
    all.settings.push_back({.name = name, .values = Choice{eight}});
  }
  return all;
}
double toy(std::size_t recipe, std::array<int, 5> const& names) {
  double sum = recipe == 0 ? 0.5 : 0;
  for (int const each : names) sum += std::abs(each - 3);
  return sum;
}
double toy_of(Candidate const& at) {
  std::array<int, 5> values{};
  for (std::size_t i = 0; i < 5; ++i) values[i] = static_cast<int>(*at.values[i]);
  return toy(at.recipe, values);
}

constexpr std::size_t trials = 120;

template <class Sampler>
double best_of(Sampler const& sampler, std::uint64_t seed) {
  SearchHistory seen;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < trials; ++i) {
    Candidate const candidate = sampler.suggest(names(), seen, i, seed);
    add(seen, candidate, toy_of(candidate));
    best = std::min(best, seen.trials.back().rungs.back().values[0]);
  }
  return best;
}

/// The algorithm of the paper, written down once more with other random numbers.
double best_of_paper(unsigned seed) {
  struct Member {
    std::size_t recipe = 0;
    std::array<int, 5> values{};
    double value = 0;
  };
  std::mt19937 random(seed);
  auto const below = [&](unsigned count) { return static_cast<int>(random() % count); };
  std::vector<Member> members;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < trials; ++i) {
    Member child;
    if (i < 20) {
      child.recipe = static_cast<std::size_t>(below(2));
      for (int& each : child.values) each = below(8);
    } else {
      Member const* parent = nullptr;
      for (int k = 0; k < 5; ++k) {
        Member const& drawn = members[members.size() - 20 + static_cast<std::size_t>(below(20))];
        if (parent == nullptr || drawn.value < parent->value) parent = &drawn;
      }
      child = *parent;
      int const parameter = below(6);
      if (parameter == 5) {
        child.recipe = 1 - child.recipe;
      } else {
        int& value = child.values[static_cast<std::size_t>(parameter)];
        for (int const old = value; value == old;) value = below(8);
      }
    }
    child.value = toy(child.recipe, child.values);
    best = std::min(best, child.value);
    members.push_back(child);
  }
  return best;
}

TEST_CASE("it does as well as the paper's algorithm, and better than random search") {
  std::vector<double> own, paper, random;
  for (unsigned seed = 0; seed < 60; ++seed) own.push_back(best_of(Evolution{}, seed));
  for (unsigned seed = 0; seed < 1000; ++seed) paper.push_back(best_of_paper(seed));
  for (unsigned seed = 0; seed < 30; ++seed) random.push_back(best_of(RandomSampler{}, seed));
  CHECK(distance_of_samples(own, paper) < 1);
  CHECK(distance_of_samples(random, paper) > 1.5);
  std::ranges::sort(own);
  std::ranges::sort(random);
  CHECK(own[30] < random[15] - 1);
}

TEST_CASE("settings out of range are refused, and one candidate stays as it is") {
  for (Evolution const& each : {Evolution{.population = 0}, Evolution{.tournament = 0}}) {
    CHECK_THROWS_AS(each.require(), frugal::SettingsError);
  }
  Evolution{}.require();
  SearchDomain const one{.recipes = {"a"}, .settings = {{.name = "x", .values = Uniform{2, 2}}}};
  SearchHistory seen;
  add(seen, {.values = {2}}, 1);
  CHECK(Evolution{.population = 1}.suggest(one, seen, 1, 1).values ==
        seen.trials[0].candidate.values);
  // Several objectives: trial 1 dominates all others, and is always the parent.
  seen = history({0, 0, 0});
  seen.trials[0].rungs.back().values = {1, 2};
  seen.trials[1].rungs.back().values = {0, 0};
  seen.trials[2].rungs.back().values = {2, 1};
  Evolution const many{.population = 3, .tournament = 40};
  CHECK(differences(many.suggest(domain(), seen, 3, 1), seen.trials[1].candidate) == 1);
}

}  // namespace frugal_test::search_evolution
