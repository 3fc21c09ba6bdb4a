// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/sampler/nsga2.hpp>

#include <frugal/search/sampler/random.hpp>

#include "support/locales.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
