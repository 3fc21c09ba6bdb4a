// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/sampler/evolution.hpp>

#include "support/locales.hpp"
#include "support/search_two_samples.hpp"

#include <doctest/doctest.h>

#include <frugal/search/sampler/sampler.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
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

namespace frugal_test::search_nsga2 {

using frugal::Candidate;
using frugal::Choice;
using frugal::Int;
using frugal::LogUniform;
using frugal::Nsga2;
using frugal::ObjectiveValues;
using frugal::RandomSampler;
using frugal::SearchDomain;
using frugal::SearchHistory;
using frugal::SearchTrial;
using frugal::TrialState;
using frugal::Uniform;

SearchDomain domain() {
  return {.recipes = {"a", "b"},
          .settings = {{.name = "rate", .values = LogUniform{1e-4, 1e-1}},
                       {.name = "x", .values = Uniform{0, 1}},
                       {.name = "depth", .values = Int{.low = 1, .high = 99}, .recipes = {1}},
                       {.name = "width", .values = Int{.low = 1, .high = 99}, .recipes = {0}}}};
}

void add(SearchHistory& to, Candidate candidate, ObjectiveValues values) {
  SearchTrial& trial = to.trials.emplace_back();
  trial.candidate = std::move(candidate);
  trial.rungs.push_back({.values = std::move(values)});
  trial.state = TrialState::complete;
}

SearchHistory history(std::vector<ObjectiveValues> const& values) {
  SearchHistory seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    add(seen, RandomSampler{}.suggest(domain(), {}, i, 9), values[i]);
  }
  return seen;
}

TEST_CASE("parents are Optuna's, generation by generation") {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/nsga2.json");
  nlohmann::json const all = nlohmann::json::parse(file).at("cases");
  REQUIRE(all.size() == 4);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.at("name").get<std::string>());
    SearchHistory const seen = history(each.at("results").get<std::vector<ObjectiveValues>>());
    Nsga2 const own{.population = each.at("population").get<std::size_t>()};
    CHECK(own.parents(domain(), seen, 0).empty());
    std::size_t generation = 0;
    for (nlohmann::json const& expected : each.at("parents")) {
      ++generation;
      CAPTURE(generation);
      std::vector<std::size_t> found = own.parents(domain(), seen, generation);
      std::ranges::sort(found);
      CHECK(found == expected.get<std::vector<std::size_t>>());
    }
  }
}

TEST_CASE("a candidate depends on earlier generations alone") {
  std::vector<ObjectiveValues> values;
  for (int i = 0; i < 25; ++i) values.push_back({static_cast<double>(i % 7), 5.0 - i % 5});
  SearchHistory const seen = history(values);
  Nsga2 const own{.population = 10};
  CHECK(own.generation() == 10);
  for (std::size_t trial : {20U, 24U, 29U}) {
    CHECK(own.suggest(domain(), seen, trial, 1) == own.suggest(domain(), seen.first(20), trial, 1));
    CHECK(own.suggest(domain(), seen, trial, 1) != own.suggest(domain(), seen.first(10), trial, 1));
    CHECK(own.suggest(domain(), seen, trial, 1) != own.suggest(domain(), seen, trial, 2));
  }
  CHECK(own.suggest(domain(), seen, 9, 1) == own.suggest(domain(), {}, 9, 1));
  // Without parents, candidates are random.
  SearchHistory failed = seen;
  for (SearchTrial& each : failed.trials) each.state = TrialState::failed;
  CHECK(own.parents(domain(), failed, 2).empty());
  CHECK(own.suggest(domain(), failed, 20, 1) == own.suggest(domain(), {}, 20, 1));
  // Pruned trials come last, and repeats never.
  failed = seen.first(10);
  failed.trials[3].state = TrialState::pruned;
  failed.trials[4].repeats = 3;
  std::vector<std::size_t> const order = own.parents(domain(), failed, 1);
  CHECK(order.size() == 9);
  CHECK(order.back() == 3);
}

TEST_CASE("a child has its parameters from two parents") {
  // Two parents; the first dominates.
  SearchHistory seen;
  add(seen, {.recipe = 0, .values = {0.001, 0.25, {}, 7}}, {0, 0});
  add(seen, {.recipe = 1, .values = {0.01, 0.75, 70, {}}}, {1, 1});
  auto const shares = [&](Nsga2 const& own) {
    std::map<std::string, double> share;
    constexpr int count = 4000;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      Candidate const child = own.suggest(domain(), seen, 2, seed);
      REQUIRE(frugal::is_candidate_of(domain(), child));
      auto const add_to = [&](char const* name, bool counts) {
        share[name] += counts * 1.0 / count;
      };
      add_to("recipe 0", child.recipe == 0);
      add_to("rate 0", child.values[0] == 0.001);
      add_to("rate 1", child.values[0] == 0.01);
      bool const first = child.values[1] == 0.25;
      add_to("x 0", first);
      add_to("all 0", child == seen.trials[0].candidate);
      add_to("all 1", child == seen.trials[1].candidate);
      add_to("depth 1", child.values[2] == 70);
      add_to("width 0", child.values[3] == 7);
    }
    return share;
  };
  auto near = [](double found, double expected) { return std::abs(found - expected) < 0.035; };
  // One parent: the better one of two draws is the first in three of four cases.
  auto share = shares({.population = 2, .crossover = 0, .mutation = 0});
  CHECK(near(share["all 0"], 0.75));
  CHECK(share["all 0"] + share["all 1"] == doctest::Approx(1));
  // Two parents that are never the same one: each parameter of the one drawn second in a tenth of children.
  share = shares({.population = 2, .crossover = 1, .swap = 0.1, .mutation = 0});
  CHECK(near(share["recipe 0"], 0.75 * 0.9 + 0.25 * 0.1));
  CHECK(near(share["rate 0"], 0.75 * 0.9 + 0.25 * 0.1));
  CHECK(share["rate 0"] + share["rate 1"] == doctest::Approx(1));
  CHECK(near(share["all 0"], 0.75 * 0.729 + 0.25 * 0.001));
  // A setting comes from the parent that has it.
  CHECK(share["width 0"] == doctest::Approx(share["recipe 0"]));
  CHECK(share["depth 1"] == doctest::Approx(1 - share["recipe 0"]));
  // One parameter of four is drawn again.
  share = shares({.population = 2, .crossover = 0});
  CHECK(near(share["rate 0"] + share["rate 1"], 0.75));
  CHECK(near(share["recipe 0"], 0.75 * 0.75 + 0.25 * 0.5));
  share = shares({.population = 2, .crossover = 1, .mutation = 1});
  CHECK(share["rate 0"] + share["rate 1"] == 0);
  CHECK(near(share["recipe 0"], 0.5));
}

SearchDomain grid() {
  SearchDomain all{.recipes = {"a"}};
  for (char const* name : {"p", "q", "r", "s", "t"}) {
    all.settings.push_back({.name = name, .values = Int{.low = 0, .high = 20}});
  }
  return all;
}
/// ZDT1 of Zitzler, Deb and Thiele (2000) on a grid of five parameters.
ObjectiveValues zdt1(Candidate const& at) {
  double sum = 0;
  for (std::size_t i = 1; i < 5; ++i) sum += *at.values[i] / 20;
  double const first = *at.values[0] / 20, g = 1 + 9 * sum / 4;
  return {first, g * (1 - std::sqrt(first / g))};
}
template <class Sampler>
double volume_of(Sampler const& sampler, std::uint64_t seed) {
  SearchHistory seen;
  std::vector<ObjectiveValues> points;
  for (std::size_t i = 0; i < 200; ++i) {
    Candidate const candidate = sampler.suggest(grid(), seen, i, seed);
    points.push_back(zdt1(candidate));
    add(seen, candidate, points.back());
  }
  return frugal::hypervolume(points, {1.1, 5});
}

TEST_CASE("the text of two samplers that draw differently is not the same") {
  Nsga2 const one{.population = 8, .crossover = 1e-8}, other{.population = 8, .crossover = 2e-8};
  CHECK(one.text() != other.text());
  CHECK(Nsga2{.population = 8, .crossover = 0.25, .swap = 0.5, .mutation = 0.125}.text() ==
        "nsga2, population 8, crossover 0.25, swap 0.5, mutation 0.125");
  std::string const here = one.text();
  support::CommaLocale const comma;
  REQUIRE(comma.works());
  CHECK(one.text() == here);
}

TEST_CASE("ten generations dominate more than as many random trials") {
  double gain = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    double const own = volume_of(Nsga2{.population = 20}, seed);
    double const random = volume_of(RandomSampler{}, seed);
    CHECK(own > random);
    gain += (own - random) / 6;
  }
  CHECK(gain > 0.5);
}

TEST_CASE("settings out of range are refused") {
  auto const refusal = [](Nsga2 const& own) -> std::string {
    try {
      own.require();
    } catch (frugal::SettingsError const& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refusal({.population = 1}).find("population is 1 (the sampler nsga2)") !=
        std::string::npos);
  CHECK(refusal({.crossover = 1.5}).find("crossover is 1.5") != std::string::npos);
  CHECK(refusal({.swap = -1}).find("swap is -1") != std::string::npos);
  CHECK(refusal({.mutation = 2}).find("mutation is 2") != std::string::npos);
  CHECK(refusal({}).empty());
}

}  // namespace frugal_test::search_nsga2
