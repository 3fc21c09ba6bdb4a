// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/journal_records.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <cmath>
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

SearchDomain const space{
    .recipes = {"a", "b"},
    .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                 {.name = "act", .values = Choice{{"relu", "gelu"}}, .recipes = {1}}}};
std::vector<SearchObjective> const objectives{{.name = "loss"},
                                              {.name = "accuracy", .maximise = true}};
SearchIdentity const identity{{"settings", "lr, \"act\""}, {"seed", "1"}};

/// A study of two trials: one has ended a rung and goes on, one repeats it and fails.
std::string journal() {
  JournalRecords to("w", objectives);
  to.create_study("test");
  to.identify(identity);
  to.create(space, {.candidate = {.recipe = 1, .values = {0.25, 1.0}}, .bracket = 2, .seed = 7});
  to.create(space,
            {.candidate = {.recipe = 0, .values = {0.5, std::nullopt}}, .seed = 8, .repeats = 0});
  to.begun(0, 100, 0);
  to.rung(0, 0, 10, {.steps = 10, .seconds = 1.5, .dollars = 0.25, .values = {0.75, -0.5}}, false,
          {"slow", "odd", "slow"});
  to.open(0, 2);
  to.begun(0, 200, 10);
  to.spent(0, 0.5);
  to.failure(1, 1, "a \"quoted\" error", 2.0);
  return to.take();
}

struct Read {
  SearchHistory history{};
  std::vector<std::pair<std::size_t, std::size_t>> order{};
  std::string fault{};
  bool is_created = false, is_identified = false;
};
Read read(std::string const& text) {
  Read found;
  JournalReader reader("journal.log", space, objectives, identity);
  try {
    for (std::string const& line : support::lines_of(text)) reader.apply(line);
  } catch (FormatError const& error) {
    found.fault = error.what();
  } catch (SettingsError const& error) {
    found.fault = error.what();
  } catch (StateError const& error) {
    found.fault = error.what();
  }
  found.history = reader.history();
  found.order = reader.order();
  found.is_created = reader.is_created();
  found.is_identified = reader.is_identified();
  return found;
}
/// The fault of the journal after a change.
std::string changed(std::string const& from, std::string const& to) {
  std::string text = journal();
  std::size_t const at = text.find(from);
  REQUIRE(at != std::string::npos);
  return read(text.replace(at, from.size(), to)).fault;
}
bool has(std::string const& text, std::string const& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

TEST_CASE("lines come to the history that was written") {
  Read const found = read(journal());
  CHECK(found.fault.empty());
  CHECK(found.is_created);
  CHECK(found.is_identified);
  REQUIRE(found.history.trials.size() == 2);
  SearchTrial const &first = found.history.trials[0], &second = found.history.trials[1];
  CHECK(first.candidate == Candidate{.recipe = 1, .values = {0.25, 1.0}});
  CHECK(first.bracket == 2);
  CHECK(first.opened == 2);
  CHECK(first.rungs.at(0).values == ObjectiveValues{0.75, -0.5});
  CHECK(first.seconds() == 2);
  CHECK(first.begun == 0);  // the attempt of which it was is over
  CHECK(first.warnings == std::vector<std::string>{"slow", "odd"});
  CHECK(second.repeats == 0);
  CHECK(second.failures == 1);
  CHECK(second.outcome == "a \"quoted\" error");
  CHECK(found.order == std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}});
}

TEST_CASE("a journal of another search is named with what differs") {
  CHECK(has(changed("\"seed\":\"1\"", "\"seed\":\"2\""),
            "it has the seed '2', and the search has '1'"));
  CHECK(has(changed("[1,2]", "[1]"), "directions of 1 objectives"));
  CHECK(has(changed("[1,2]", "[1,1]"), "directions of 2 objectives"));
  CHECK(has(changed("\"format\":2", "\"format\":1"), "its format is 1, and this frugal writes 2"));
  CHECK(has(changed("\"seed\":\"1\"", "\"seed\":\"1\",\"job: more\":\"x\""),
            "more is x there and nothing here"));
  CHECK(has(changed("\"seed\":\"1\"", "\"sead\":\"1\""), "it has the seed 'nothing'"));
}

TEST_CASE("a damaged line is an error with its number") {
  std::string const whole = journal();
  CHECK(has(changed("{\"op_code\":4", "{\"op_code\":,"), "line 3): it is no JSON"));
  CHECK(
      has(changed("\"op_code\":4", "\"op_code\":\"4\""), "line 3): 'op_code' is no whole number"));
  CHECK(has(changed("\"op_code\":4", "\"op_kode\":4"), "line 3): it has no 'op_code'"));
  CHECK(has(changed("\"lr\":0.25", "\"lr\":25"), "line 3): its parameters are none of this space"));
  CHECK(has(changed("\"recipe\":1", "\"recipe\":0.5"), "its parameters are none of this space"));
  CHECK(
      has(changed("\"repeats\":0", "\"repeats\":5"), "it repeats trial 5, which was not created"));
  CHECK(
      has(changed("\"frugal\":{\"bracket", "\"other\":{\"bracket"), "was not created by a search"));
  CHECK(has(changed("\"trial_id\":0", "\"trial_id\":9"), "line 5): trial 9 was not created"));
  CHECK(has(changed("frugal:rung 0", "frugal:rung 1"), "it ends a rung out of turn"));
  CHECK(has(changed("\"values\":[0.75,0.5]", "\"values\":[0.75]"), "one value for each objective"));
  CHECK(has(changed("\"frugal:opened\":2", "\"frugal:opened\":3"), "it opens a rung out of turn"));
  CHECK(has(read(whole + whole.substr(0, whole.find('\n') + 1)).fault, "a second study"));
  CHECK(has(read(whole + "{\"op_code\":5,\"trial_id\":0}\n").fault,
            "operation 5 is none of a search"));
  CHECK(has(read(whole + "{\"op_code\":6,\"trial_id\":0,\"state\":7}\n").fault, "its state is 7"));
  CHECK(has(read(whole + "{\"op_code\":6,\"trial_id\":1,\"state\":1}\n").fault,
            "it completes a trial that has no result"));
}

TEST_CASE("kills without a new checkpoint are counted until there is one, or another end") {
  JournalRecords to("w", objectives);
  to.create(space, {.candidate = {.recipe = 0, .values = {0.5, std::nullopt}}});
  std::string text = to.take();
  auto const after = [&](auto const& write) {
    write();
    text += to.take();
    return read(text).history.trials.at(0);
  };
  SearchTrial trial = after([&] { to.begun(0, 100, 0); });
  CHECK(trial.begun == 100);
  CHECK(trial.kills == 0);
  trial = after([&] { to.killed(0, 5, 0), to.begun(0, 200, 0); });
  CHECK(trial.kills == 1);
  CHECK(trial.begun == 200);
  CHECK(trial.seconds() == 5);
  trial = after([&] { to.killed(0, 5, 0), to.begun(0, 300, 0); });
  CHECK(trial.kills == 2);
  trial = after([&] { to.killed(0, 5, 10); });  // it came to step 10
  CHECK(trial.kills == 0);
  CHECK(trial.begun == 0);
  CHECK(trial.seconds() == 15);
  trial = after([&] { to.begun(0, 400, 10), to.killed(0, 5, 10); });
  CHECK(trial.kills == 1);
  trial = after([&] { to.begun(0, 500, 10), to.spent(0, 1); });
  CHECK(trial.kills == 0);
  CHECK(trial.seconds() == 21);
}

TEST_CASE("notes of a dashboard are passed over") {
  Read const found =
      read(journal() +
           "{\"op_code\":3,\"worker_id\":\"x\",\"study_id\":0,\"system_attr\":{\"note\":\"y\"}}\n"
           "{\"op_code\":8,\"trial_id\":0,\"user_attr\":{\"mine\":[1,{\"a\":2}]}}\n");
  CHECK(found.fault.empty());
  CHECK(found.history.trials.size() == 2);
}

TEST_CASE("a value that is no number in JSON is read as one that is not") {
  JournalRecords to("w", objectives);
  to.create(space, {.candidate = {.recipe = 0, .values = {0.5, std::nullopt}}});
  double const nan = std::numeric_limits<double>::quiet_NaN();
  to.failure(0, 2, "once", 1);
  to.rung(0, 0, 10, {.values = {nan, 1}}, true);
  SearchTrial const trial = read(to.take()).history.trials.at(0);
  CHECK(std::isnan(trial.rungs.at(0).values[0]));
  CHECK(trial.rungs[0].values[1] == 1);
  CHECK(trial.ended);
  CHECK(trial.failures == 0);  // it has gone on since
}

}  // namespace frugal_test::search_records
