// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/trials/candidate.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::search_distribution {

using frugal::Choice;
using frugal::Distribution;
using frugal::distribution_text;
using frugal::Int;
using frugal::LogUniform;
using frugal::parse_distribution;
using frugal::Uniform;
using frugal::value_at;

std::map<std::string, Distribution> kinds() {
  return {{"real", Uniform{-2.5, 7.25}},
          {"rate", LogUniform{1e-4, 0.1}},
          {"one", Uniform{3, 3}},
          {"whole", Int{.low = -3, .high = 5}},
          {"steps", Int{.low = 8, .high = 64, .step = 8}},
          {"uneven steps", Int{.low = 1, .high = 9, .step = 4}},
          {"log", Int{.low = 1, .high = 1000, .log = true}},
          {"names", Choice{{"adam", "sgd", "with \"quotes\""}}}};
}

std::string refusal(Distribution const& of) {
  try {
    frugal::require_values(of, "x");
  } catch (frugal::SettingsError const& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("texts and values are Optuna's") {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/distributions.json");
  nlohmann::json const all = nlohmann::json::parse(file);
  auto const units = all.at("units").get<std::vector<double>>();
  REQUIRE(all.at("cases").size() == kinds().size());
  for (nlohmann::json const& each : all.at("cases")) {
    std::string const name = each.at("name").get<std::string>();
    std::string const text = each.at("text").get<std::string>();
    CAPTURE(name);
    Distribution const own = kinds().at(name);
    CHECK(parse_distribution(text) == own);
    CHECK(parse_distribution(distribution_text(own)) == own);
    CHECK(nlohmann::json::parse(distribution_text(own)) == nlohmann::json::parse(text));
    auto const values = each.at("values").get<std::vector<double>>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(units[i]);
      double const found = value_at(own, units[i]);
      CHECK(found == doctest::Approx(values[i]).epsilon(1e-12));
      CHECK(frugal::has_value(own, found));
    }
  }
  for (nlohmann::json const& each : all.at("others")) {
    CHECK(parse_distribution(each.get<std::string>()) == std::nullopt);
  }
}

TEST_CASE("every value comes up, and none beyond the ends") {
  for (auto const& [name, each] : kinds()) {
    CAPTURE(name);
    frugal::require_values(each, name);
    std::map<double, int> seen;
    for (int i = 0; i <= 4000; ++i) ++seen[value_at(each, i / 4000.0)];
    for (auto const& [value, times] : seen) CHECK(frugal::has_value(each, value));
    CHECK(frugal::has_value(each, value_at(each, -1)));
    CHECK(frugal::has_value(each, value_at(each, 2)));
    CHECK(!frugal::has_value(each, std::numeric_limits<double>::quiet_NaN()));
    CHECK(!frugal::has_value(each, 1e300));
    if (auto const count = frugal::count_of(each); count && *count < 100) {
      CHECK(seen.size() == *count);
      for (auto const& [value, times] : seen) {
        CHECK(times == doctest::Approx(4001.0 / static_cast<double>(*count)).epsilon(0.01));
      }
    }
  }
  CHECK(frugal::count_of(Int{.low = 1, .high = 10, .step = 4}) == 3U);
  CHECK(distribution_text(Int{.low = 1, .high = 10, .step = 4}) ==
        distribution_text(Int{.low = 1, .high = 9, .step = 4}));
  CHECK(frugal::count_of(Uniform{}) == std::nullopt);
  CHECK(value_at(Uniform{0, 1}, 1) < 1);
}

TEST_CASE("a distribution without values is refused, with what it was given") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal(Uniform{2, 1}).find("'x' has no values") != std::string::npos);
  CHECK(refusal(Uniform{0, nan}).find("nan") != std::string::npos);
  CHECK(refusal(LogUniform{0, 1}).find("above 0") != std::string::npos);
  CHECK(refusal(Int{.low = 5, .high = 1}).find("it goes from 5 to 1") != std::string::npos);
  CHECK(refusal(Int{.low = 0, .high = 9, .step = 0}).find("in steps of 0") != std::string::npos);
  CHECK(refusal(Int{.low = 0, .high = 9, .log = true}).find("by its logarithm") !=
        std::string::npos);
  CHECK(refusal(Int{.low = std::numeric_limits<std::int64_t>::min(), .high = 0}) != "");
  CHECK(refusal(Choice{}).find("a choice among none") != std::string::npos);
  CHECK(refusal(Choice{{"a", "b", "a"}}).find("'a' twice") != std::string::npos);
}

TEST_CASE("what is no distribution is none") {
  for (std::string const text :
       {"", "{}", "[]", "{\"name\": \"FloatDistribution\", \"attributes\": {}}",
        "{\"name\": \"Other\", \"attributes\": {\"low\": 1}}"}) {
    CAPTURE(text);
    CHECK(parse_distribution(text) == std::nullopt);
  }
}

}  // namespace frugal_test::search_distribution

namespace frugal_test::search_candidate {

using namespace frugal;

std::string refusal(SearchDomain const& domain) {
  try {
    domain.require();
  } catch (SettingsError const& error) {
    return error.what();
  }
  return {};
}

SearchDomain domain() {
  return {.recipes = {"a", "b"},
          .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                       {.name = "width", .values = Int{2, 8, 2}, .recipes = {1}}}};
}

TEST_CASE("a candidate has a value exactly for the settings of its recipe") {
  CHECK(refusal(domain()).empty());
  CHECK(is_candidate_of(domain(), {.recipe = 0, .values = {0.5, std::nullopt}}));
  CHECK(is_candidate_of(domain(), {.recipe = 1, .values = {0.5, 4.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 0, .values = {0.5, 4.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 1, .values = {0.5, std::nullopt}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 1, .values = {0.5, 3.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 1, .values = {5.0, 4.0}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 2, .values = {0.5, std::nullopt}}));
  CHECK(!is_candidate_of(domain(), {.recipe = 0, .values = {0.5}}));
}

TEST_CASE("a space without recipes, with a name twice or with an empty range is refused") {
  SearchDomain none = domain();
  none.recipes.clear();
  CHECK(refusal(none).find("the search space is empty") != std::string::npos);
  SearchDomain twice = domain();
  twice.settings[1].name = "lr";
  CHECK(refusal(twice).find("two settings have the name 'lr'") != std::string::npos);
  SearchDomain reserved = domain();
  reserved.settings[0].name = "recipe";
  CHECK(refusal(reserved).find("the name 'recipe'") != std::string::npos);
  SearchDomain empty = domain();
  empty.settings[0].values = LogUniform{1, 1e-3};
  CHECK(refusal(empty).find("the setting 'lr' has no values") != std::string::npos);
  SearchDomain beyond = domain();
  beyond.settings[1].recipes = {2};
  CHECK(refusal(beyond).find("a recipe that does not exist") != std::string::npos);
}

}  // namespace frugal_test::search_candidate
