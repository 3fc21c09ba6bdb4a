// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/search/sampler/sobol.hpp>

#include <ATen/Context.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_sobol_sampler {

using frugal::Candidate;
using frugal::Choice;
using frugal::Int;
using frugal::LogUniform;
using frugal::SearchDomain;
using frugal::SobolSampler;
using frugal::Uniform;

SearchDomain domain() {
  return {.recipes = {"a", "b", "c", "d"},
          .settings = {{.name = "x", .values = Uniform{0, 1}},
                       {.name = "depth", .values = Int{.low = 1, .high = 8}, .recipes = {1, 2}},
                       {.name = "act", .values = Choice{{"relu", "gelu"}}, .recipes = {2}}}};
}

SearchDomain cube(std::size_t settings) {
  SearchDomain all{.recipes = {"a"}};
  for (std::size_t i = 0; i < settings; ++i) {
    all.settings.push_back({.name = "x" + std::to_string(i), .values = Uniform{0, 1}});
  }
  return all;
}

TEST_CASE("points are those of torch.quasirandom.SobolEngine") {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/sobol.json");
  nlohmann::json const all = nlohmann::json::parse(file).at("cases");
  REQUIRE(all.size() == 3);
  for (nlohmann::json const& each : all) {
    auto const dimensions = each.at("dimensions").get<std::size_t>();
    auto const numbers = each.at("numbers").get<std::vector<std::size_t>>();
    auto const points = each.at("points").get<std::vector<std::vector<double>>>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CAPTURE(numbers[i]);
      std::vector<std::uint32_t> const own = frugal::detail::sobol_point(dimensions, numbers[i]);
      for (std::size_t k = 0; k < dimensions; ++k) CHECK(own[k] * 0x1.0p-30 == points[i][k]);
      // The first dimension is the recipe's.
      Candidate const plain =
          SobolSampler{.scramble = false}.suggest(cube(dimensions - 1), {}, numbers[i], 3);
      for (std::size_t k = 1; k < dimensions; ++k) CHECK(plain.values[k - 1] == points[i][k]);
    }
  }
}

TEST_CASE("scrambled points lie as evenly as plain ones") {
  // 64 recipes are the first dimension, in 64 equal parts, and x0 is the second one.
  SearchDomain many = cube(2);
  for (int i = 1; i < 64; ++i) many.recipes.push_back("a" + std::to_string(i));
  for (bool const scramble : {false, true}) {
    for (std::uint64_t seed : {1U, 2U, 3U}) {
      std::vector<Candidate> found;
      for (std::size_t i = 0; i < 64; ++i) {
        found.push_back(SobolSampler{.scramble = scramble}.suggest(many, {}, i, seed));
      }
      // Of 64 points each box of 64 equal ones has one, however the two sides are divided.
      for (unsigned power = 0; power <= 6; ++power) {
        std::set<std::pair<std::size_t, int>> boxes;
        for (Candidate const& each : found) {
          boxes.emplace(each.recipe >> (6 - power),
                        static_cast<int>(std::ldexp(*each.values[0], 6 - static_cast<int>(power))));
        }
        CHECK(boxes.size() == 64);
      }
      std::set<int> third;
      for (Candidate const& each : found) third.insert(static_cast<int>(*each.values[1] * 64));
      CHECK(third.size() == 64);
    }
  }
}

TEST_CASE("a scramble depends on the seed alone") {
  auto const at = [](std::size_t trial, std::uint64_t seed) {
    return SobolSampler{}.suggest(domain(), {}, trial, seed);
  };
  CHECK(at(5, 1) == at(5, 1));
  CHECK(at(5, 1).values[0] != at(5, 2).values[0]);
  // The map keeps the exclusive or of any three points: it is linear but for the shift.
  std::vector<std::uint32_t> numbers{0x2a5f10c3, 0x013ab0ff, 0x3c00ff01};
  numbers.push_back(numbers[0] ^ numbers[1] ^ numbers[2]);
  std::uint32_t all = 0;
  for (std::uint32_t const each : numbers) {
    frugal::Draw draw({.seed = 1});
    std::uint32_t const found = frugal::detail::scrambled(each, draw);
    CHECK(found < (1U << 30));
    CHECK(found != each);
    all ^= found;
  }
  CHECK(all == 0);
  // Over many seeds a point is anywhere.
  double mean = 0;
  int below = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    double const x = *at(5, seed).values[0];
    mean += x / 1000;
    below += x < 0.25;
  }
  CHECK(std::abs(mean - 0.5) < 0.04);
  CHECK(std::abs(below - 250) < 60);
}

TEST_CASE("candidates have their recipe's settings, and recipes come up equally") {
  at::Tensor const before = at::globalContext().defaultGenerator(at::kCPU).get_state();
  std::map<std::size_t, int> recipes;
  std::map<double, int> depths;
  for (std::size_t i = 0; i < 128; ++i) {
    Candidate const found = SobolSampler{}.suggest(domain(), {}, i, 4);
    REQUIRE(frugal::is_candidate_of(domain(), found));
    ++recipes[found.recipe];
    if (found.values[1]) ++depths[*found.values[1]];
  }
  for (auto const& [recipe, count] : recipes) CHECK(count == 32);
  CHECK(depths.size() == 8);
  for (auto const& [depth, count] : depths) CHECK(std::abs(count - 8) <= 2);
  CHECK(at::equal(before, at::globalContext().defaultGenerator(at::kCPU).get_state()));
  CHECK(SobolSampler{}.generation() == 0);
}

TEST_CASE("more dimensions or points than LibTorch has are refused") {
  auto const refusal = [](SearchDomain const& of, std::size_t trial) -> std::string {
    try {
      SobolSampler{.scramble = false}.suggest(of, {}, trial, 1);
    } catch (frugal::SettingsError const& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refusal(cube(21201), 0).find("has 21201 settings") != std::string::npos);
  CHECK(refusal(cube(21200), 1).empty());
  CHECK(refusal(cube(2), std::size_t{1} << 30).find("has no point") != std::string::npos);
  CHECK(refusal(cube(2), (std::size_t{1} << 30) - 1).empty());
}

}  // namespace frugal_test::search_sobol_sampler
