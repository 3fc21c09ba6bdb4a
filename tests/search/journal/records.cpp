// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/journal/records.hpp>

#include "support/files.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

namespace frugal_test::search_records {

using namespace frugal;
using namespace frugal::detail;
using nlohmann::json;

SearchDomain domain() {
  return {.recipes = {"a", "b"},
          .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                       {.name = "act", .values = Choice{{"relu", "gelu"}}, .recipes = {1}}}};
}

/// The lines that one call writes.
template <class Call>
std::vector<json> lines(Call&& call) {
  JournalRecords records("w-1", {{.name = "loss"}, {.name = "accuracy", .maximise = true}});
  call(records);
  std::vector<json> all;
  for (std::string const& each : support::lines_of(records.take())) {
    all.push_back(json::parse(each));
    CHECK(all.back().at("worker_id") == "w-1");
  }
  CHECK(records.take().empty());
  return all;
}
/// The only attribute in the only line.
json attribute(std::vector<json> const& all, std::uint64_t trial, char const* name) {
  REQUIRE(all.size() == 1);
  CHECK(all[0].at("op_code") == 8);
  CHECK(all[0].at("trial_id") == trial);
  CHECK(all[0].at("user_attr").size() == 1);
  return all[0].at("user_attr").at(name);
}

TEST_CASE("a study has Optuna's directions, and the search in an attribute") {
  auto const study = lines([](JournalRecords& to) { to.create_study("of \"mine\""); });
  REQUIRE(study.size() == 1);
  CHECK(study[0].at("op_code") == 0);
  CHECK(study[0].at("study_name") == "of \"mine\"");
  CHECK(study[0].at("directions") == json{1, 2});
  auto const identity = lines([](JournalRecords& to) { to.identify({{"seed", "3"}}); });
  CHECK(identity[0].at("op_code") == 2);
  CHECK(identity[0].at("user_attr") == json{{"frugal", {{"format", 2}, {"seed", "3"}}}});
  auto const names = lines([](JournalRecords& to) { to.name_objectives(); });
  CHECK(names[0].at("user_attr").at("objectives") == json{"loss", "accuracy"});
}

TEST_CASE("a trial has the values of its recipe, and the distributions of those alone") {
  auto const first = lines([](JournalRecords& to) {
    to.create(domain(), {.candidate = {.recipe = 0, .values = {0.5, std::nullopt}}, .seed = 7});
  });
  REQUIRE(first.size() == 1);
  CHECK(first[0].at("op_code") == 4);
  CHECK(first[0].at("params") == json{{"recipe", 0.0}, {"lr", 0.5}});
  CHECK(first[0].at("distributions").size() == 2);
  CHECK(first[0].at("user_attrs").at("frugal") == json{{"bracket", 0}, {"seed", 7}});
  auto const again = lines([](JournalRecords& to) {
    to.create(domain(), {.candidate = {.recipe = 1, .values = {0.5, 1.0}}, .repeats = 4});
  });
  CHECK(again[0].at("params").size() == 3);
  CHECK(again[0].at("user_attrs").at("frugal").at("repeats") == 4);
  std::regex const time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00)");
  CHECK(std::regex_match(again[0].at("datetime_start").get<std::string>(), time));
}

TEST_CASE(
    "a rung is an attribute and, for Optuna's plots, an intermediate value with its own sign") {
  RungResult result{.steps = 9, .samples = 72, .seconds = 1.5, .values = {0.25, -0.75}};
  auto const both = lines([&](JournalRecords& to) { to.rung(3, 1, 9, result, true); });
  REQUIRE(both.size() == 2);
  json const& own = both[0].at("user_attr").at("frugal:rung 1");
  CHECK(own.at("values") == json{0.25, 0.75});
  CHECK(own.at("dollars").is_null());
  CHECK(own.at("ended") == true);
  CHECK(both[1].at("op_code") == 7);
  CHECK(both[1].at("step") == 9);
  CHECK(both[1].at("intermediate_value") == 0.25);
  result.values[0] = std::numeric_limits<double>::quiet_NaN();
  auto const nan = lines([&](JournalRecords& to) { to.rung(3, 1, 9, result, false); });
  REQUIRE(nan.size() == 1);
  CHECK(nan[0].at("user_attr").at("frugal:rung 1").at("values")[0].is_null());
}

TEST_CASE("attempts, failures and states are lines of their trial") {
  CHECK(attribute(lines([](JournalRecords& to) { to.open(2, 3); }), 2, "frugal:opened") == 3);
  CHECK(attribute(lines([](JournalRecords& to) { to.begun(2, 8.5, 40); }), 2, "frugal:begun") ==
        json{{"time", 8.5}, {"checkpoint", 40}});
  CHECK(attribute(lines([](JournalRecords& to) { to.killed(2, 0.5, 40); }), 2, "frugal:killed") ==
        json{{"seconds", 0.5}, {"checkpoint", 40}});
  CHECK(attribute(lines([](JournalRecords& to) { to.spent(2, 0.5); }), 2, "frugal:spent") ==
        json{{"seconds", 0.5}});
  CHECK(attribute(lines([](JournalRecords& to) { to.failure(2, 1, "a\nb", 0.5); }), 2,
                  "frugal:failures") == json{{"count", 1}, {"error", "a\nb"}, {"seconds", 0.5}});
  CHECK(attribute(lines([](JournalRecords& to) { to.outcome(2, "why"); }), 2, "frugal:outcome") ==
        "why");
  ObjectiveValues const values{0.25, -0.75};
  auto const complete =
      lines([&](JournalRecords& to) { to.state(2, TrialState::complete, &values); });
  CHECK(complete[0].at("op_code") == 6);
  CHECK(complete[0].at("state") == 1);
  CHECK(complete[0].at("values") == json{0.25, 0.75});
  auto const pruned = lines([](JournalRecords& to) { to.state(2, TrialState::pruned, nullptr); });
  CHECK(pruned[0].at("state") == 2);
  CHECK(pruned[0].at("values").is_null());
}

}  // namespace frugal_test::search_records
