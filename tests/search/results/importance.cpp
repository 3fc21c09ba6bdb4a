// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/importance.hpp>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::search_importance {

using frugal::Candidate;
using frugal::ImportanceSample;
using frugal::SearchDomain;
using frugal::SearchHistory;
using frugal::SearchTrial;
using frugal::setting_importance;
using frugal::SettingImportance;
using frugal::TrialState;

nlohmann::json fixture() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/importance.json");
  return nlohmann::json::parse(file);
}

frugal::Distribution distribution(std::string const& kind, nlohmann::json const& bounds) {
  if (kind == "choice") return frugal::Choice{bounds[0].get<std::vector<std::string>>()};
  if (kind == "int") return frugal::Int{bounds[0], bounds[1], bounds[2], false};
  if (kind == "log int") return frugal::Int{bounds[0], bounds[1], 1, true};
  if (kind == "log") return frugal::LogUniform{bounds[0], bounds[1]};
  REQUIRE(kind == "uniform");
  return frugal::Uniform{bounds[0], bounds[1]};
}

SearchDomain domain_of(nlohmann::json const& from) {
  SearchDomain domain{.recipes = from.at("recipes")};
  for (nlohmann::json const& each : from.at("settings")) {
    domain.settings.push_back({.name = each.at("name"),
                               .values = distribution(each.at("kind"), each.at("bounds")),
                               .recipes = each.at("recipes")});
  }
  domain.require();
  return domain;
}

SearchHistory history_of(nlohmann::json const& from) {
  SearchHistory history;
  for (nlohmann::json const& each : from) {
    SearchTrial trial{.candidate = {.recipe = each.at("recipe")}};
    for (nlohmann::json const& value : each.at("values")) {
      trial.candidate.values.push_back(value.is_null() ? std::nullopt
                                                       : std::optional(value.get<double>()));
    }
    std::vector<double> values;
    for (nlohmann::json const& value : each.at("objectives")) {
      values.push_back(value.is_string() ? std::numeric_limits<double>::infinity()
                                         : value.get<double>());
    }
    trial.rungs.push_back({.steps = 1, .samples = 1, .seconds = 1, .values = values});
    trial.state = each.at("state") == "complete" ? TrialState::complete : TrialState::pruned;
    history.trials.push_back(trial);
  }
  return history;
}

TEST_CASE("importances are Optuna's") {
  nlohmann::json const all = fixture();
  SearchDomain const domain = domain_of(all);
  REQUIRE(all.at("cases").size() == 6);
  for (nlohmann::json const& each : all.at("cases")) {
    SearchHistory const history = history_of(each.at("trials"));
    for (SearchTrial const& trial : history.trials) {
      REQUIRE(frugal::is_candidate_of(domain, trial.candidate));
    }
    auto const found =
        setting_importance(domain, history, each.at("objective").get<std::size_t>(),
                           {.target = each.at("target"), .region = each.at("region")});
    CHECK(found.size() == domain.settings.size() + 1);
    // Optuna leaves out settings that no complete trial has.
    std::map<std::string, double> const expected = each.at("importance");
    CHECK(expected.size() + 1 >= found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(found[i].name);
      auto const of_optuna = expected.find(found[i].name);
      double const importance = of_optuna == expected.end() ? 0 : of_optuna->second;
      CHECK(found[i].importance == doctest::Approx(importance).epsilon(1e-9));
      double const share =
          of_optuna == expected.end() ? 0 : each.at("share").at(found[i].name).get<double>();
      CHECK(found[i].share == doctest::Approx(share).epsilon(1e-9));
      if (i > 0) CHECK(found[i].importance <= found[i - 1].importance);
    }
  }
}

SearchDomain two_settings() {
  return {.recipes = {"one", "two"},
          .settings = {{.name = "a", .values = frugal::Uniform{0, 1}},
                       {.name = "b", .values = frugal::Uniform{0, 1}, .recipes = {1}}}};
}

std::vector<ImportanceSample> samples(std::size_t count) {
  std::vector<ImportanceSample> all;
  for (std::size_t i = 0; i < count; ++i) {
    double const a = static_cast<double>(i * 37 % 101) / 101,
                 b = static_cast<double>(i * 71 % 97) / 97;
    bool const second = i % 2 == 1;
    all.push_back(
        {{.recipe = second ? 1U : 0U, .values = {a, second ? std::optional(b) : std::nullopt}}, a});
  }
  return all;
}

TEST_CASE("the setting that decides is the most important one") {
  auto const found = setting_importance(two_settings(), samples(60));
  CHECK(found.front().name == "a");
  CHECK(found.front().share > 0.7);
  double sum = 0;
  for (SettingImportance const& each : found) sum += each.share;
  CHECK(sum == doctest::Approx(1));
  for (SettingImportance const& each : found) CHECK(each.trials == (each.name == "b" ? 30U : 60U));
}

TEST_CASE("values that are not finite do not count") {
  auto some = samples(60);
  auto const expected = setting_importance(two_settings(), some);
  for (double const value : {std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    some.push_back({{.recipe = 0, .values = {0.99, std::nullopt}}, value});
  }
  auto const found = setting_importance(two_settings(), some);
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i].importance == expected[i].importance);
}

TEST_CASE("pruned, failed and running trials, and repeats, do not count") {
  SearchHistory history;
  for (ImportanceSample const& each : samples(40)) {
    SearchTrial trial{.candidate = each.candidate, .state = TrialState::complete};
    trial.rungs.push_back({.values = {each.value}});
    history.trials.push_back(trial);
  }
  auto const expected = setting_importance(two_settings(), history);
  CHECK(expected.front().importance > 0);
  SearchTrial odd{.candidate = {.recipe = 0, .values = {0.99, std::nullopt}}};
  odd.rungs.push_back({.values = {-5.0}});
  for (TrialState const state : {TrialState::pruned, TrialState::failed, TrialState::running}) {
    odd.state = state;
    history.trials.push_back(odd);
  }
  odd.state = TrialState::complete;
  odd.repeats = 0;
  history.trials.push_back(odd);
  auto const found = setting_importance(two_settings(), history);
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i].importance == expected[i].importance);
}

TEST_CASE("of nothing, of one trial and of equal ones nothing is known") {
  auto const none = [](std::vector<ImportanceSample> const& of) {
    auto const found = setting_importance(two_settings(), of);
    CHECK(found.size() == 3);
    for (SettingImportance const& each : found) {
      CHECK(each.importance == 0);
      CHECK(each.share == 0);
    }
  };
  none({});
  none(samples(1));
  auto equal = samples(10);
  for (ImportanceSample& each : equal) each.value = 3;
  none(equal);
}

TEST_CASE("a range of one value is of no importance, and ends of a range are in it") {
  SearchDomain const domain{.recipes = {"one"},
                            .settings = {{.name = "c", .values = frugal::Uniform{2, 2}},
                                         {.name = "n", .values = frugal::Int{1, 2, 1, true}},
                                         {.name = "x", .values = frugal::LogUniform{1e-5, 1}}}};
  std::vector<ImportanceSample> some;
  for (std::size_t i = 0; i < 20; ++i) {
    some.push_back({{.recipe = 0, .values = {2.0, i % 2 == 1 ? 2.0 : 1.0, i < 10 ? 1e-5 : 1.0}},
                    static_cast<double>(i)});
  }
  auto const found = setting_importance(domain, some);
  CHECK(found.front().name == "x");
  for (SettingImportance const& each : found) {
    CHECK(std::isfinite(each.importance));
    if (each.name == "c" || each.name == "recipe") CHECK(each.importance == 0);
  }
}

TEST_CASE("a target that is no part of the region is refused") {
  for (frugal::ImportanceOptions const options :
       {frugal::ImportanceOptions{0, 1}, {0.5, 0.5}, {0.1, 1.5}, {std::nan(""), 1}}) {
    CHECK_THROWS_AS(setting_importance(two_settings(), samples(10), options),
                    frugal::SettingsError);
  }
}

}  // namespace frugal_test::search_importance
