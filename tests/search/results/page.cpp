// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/quantity.hpp>
#include <frugal/search/results/page.hpp>

#include "support/page_data.hpp"
#include "support/search_synthetic.hpp"

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

namespace frugal_test::search_page {

using frugal::search_page;
using frugal::SearchResults;

using namespace page_data;

json page_of(SearchResults const& of, std::string const& code = "") {
  return data_of(search_page(of, "page", code));
}

TEST_CASE("a page has the winner, its mean over seeds, the cost, and all sections") {
  SearchResults of = synthetic::search(64);
  of.warnings = {"lr is at its highest value."};
  of.dropped = {{"Muon + FP16", "Muon does not take FP16."}};
  json const page =
      data_of(search_page(of, "My <search>", "using Winner = fr::Recipe<fr::AdamW>;"));
  CHECK(page.at("title") == "My <search>");
  CHECK(page.at("subtitle") == "Report of a search");
  CHECK(figure(page, "winner") ==
        json{"AdamW + BF16", "trial 39: lr 0.0038, width 240, norm none"});
  CHECK(figure(page, "accuracy") == json{"0.8939", "over 3 other seeds: 0.9261 \xc2\xb1 0.013"});
  CHECK(figure(page, "trials") == json{"64", "53 pruned, 7 failed"});
  CHECK(figure(page, "cost") == json{"$2.40", "57 min 33 s on workers, $0.126 for the winner"});
  CHECK(figure(page, "trained") == json{"16.8%", "of what all trials in full would"});
  CHECK(says(page,
             "The winner is trial 39, AdamW + BF16, lr 0.003795, width 240, norm none. Its "
             "accuracy in the search is"));
  CHECK(says(page, "Warning: lr is at its highest value."));
  CHECK(parts(page, "code").at(0).at("text") == "using Winner = fr::Recipe<fr::AdamW>;");
  CHECK(sections(page) == std::vector<std::string>{"values", "settings", "importance", "finalists",
                                                   "code", "trials", "rungs", "failed", "dropped"});
  CHECK(row(section(page, "dropped"), "Muon + FP16")[1].at("text") == "Muon does not take FP16.");
}

TEST_CASE("two objectives add a scatter and the size of the Pareto front") {
  SearchResults const of = synthetic::search(96, 2);
  json const page = page_of(of);
  CHECK(chart(page, "Latency against accuracy").at("id") == "objectives");
  CHECK(figure(page, "on the Pareto front")[0] == std::to_string(of.front.size()) + " trials");
}

TEST_CASE("a search of failures alone, and one of nothing, are pages") {
  json const failed = page_of(synthetic::search(12, 1, true));
  CHECK(figure(failed, "winner")[1] == "no trial is complete");
  CHECK(sections(failed) == std::vector<std::string>{"settings", "trials", "failed"});
  SearchResults nothing = synthetic::search(8);
  nothing.history.trials.clear();
  nothing.order.clear();
  nothing.winner.reset();
  json const page = page_of(nothing);
  CHECK(sections(page).empty());
  CHECK(figure(page, "trials")[0] == "0");
}

TEST_CASE("no text of a search is markup") {
  std::string const evil = "</script><script>x()</script>\"'<img src=x>";
  SearchResults of = synthetic::search(64, 2);
  for (std::string& each : of.domain.recipes) each += evil;
  for (auto& each : of.domain.settings) each.name += evil;
  std::get<frugal::Choice>(of.domain.settings[3].values).names = {"a" + evil, "b" + evil,
                                                                  "c" + evil};
  for (auto& each : of.objectives) each.name += evil;
  for (auto& each : of.history.trials) {
    if (!each.outcome.empty()) each.outcome = evil;
  }
  of.warnings = {evil};
  of.dropped = {{evil, evil}};
  of.stopped_by = evil;
  of.unit = "steps";
  std::string const html = search_page(of, evil, evil);
  CHECK(!has(html, "<img"));
  CHECK(!has(html, "x()</script>"));
  json const page = data_of(html);
  CHECK(page.at("title") == evil);
  CHECK(parts(page, "code").at(0).at("text") == evil);
  CHECK(row(section(page, "dropped"), evil)[1].at("text") == evil);
}

TEST_CASE("a thousand trials stay below a megabyte, and the page says which are not drawn") {
  std::string const html = search_page(synthetic::search(1000, 2), "many");
  CHECK(html.size() < 1'000'000);
  CHECK(has(chart(data_of(html), "Accuracy by rung").at("notes").at(0).get<std::string>(),
            "trials that ended at their first rung are drawn, spread evenly over their ranks."));
}

TEST_CASE("importances are of the highest rung that thirty trials have reached") {
  SearchResults const of = synthetic::search(64);
  frugal::html::ComparableTrials const trials(of);
  CHECK(trials.budget == 250);
  CHECK(trials.samples.size() == 57);
  CHECK(frugal::html::ComparableTrials(synthetic::search(200)).budget == 1000);
  json const found = parts(section(page_of(of), "importance"), "bars").at(0);
  CHECK(
      has(found.at("note").get<std::string>(),
          "for being among the best 10% by accuracy of the 57 trials with a value at 250 steps."));
  double sum = 0;
  for (json const& each : found.at("items")) sum += each.at("to").get<double>();
  CHECK(sum == doctest::Approx(1));
  CHECK(section(page_of(synthetic::search(6)), "importance").is_null());
}

TEST_CASE("without a price the page has times") {
  SearchResults of = synthetic::search(64);
  of.dollars_per_hour.reset();
  json const page = page_of(of);
  CHECK(figure(page, "time on workers")[0] == "57 min 33 s");
  CHECK(!has(page.dump(), "$"));
}

TEST_CASE("the page is written as a file, and results that do not fit each other are refused") {
  SearchResults of = synthetic::search(8);
  auto const file = std::filesystem::temp_directory_path() /
                    ("frugal_search_page_" + std::to_string(::getpid()) + ".html");
  frugal::write_search_page(file, of, "written");
  std::ifstream in(file);
  std::string const text{std::istreambuf_iterator<char>(in), {}};
  CHECK(text == search_page(of, "written"));
  std::filesystem::remove(file);
  of.winner = 1000;
  CHECK_THROWS_AS(search_page(of, "refused"), frugal::SettingsError);
}

}  // namespace frugal_test::search_page

namespace frugal_test::search_page_tables {

using namespace page_data;
using frugal::SearchResults;

json written(SearchResults const& of, std::string const& id) {
  return section(data_of(frugal::search_page(of, "page")), id);
}
json rows(SearchResults const& of, std::string const& id) {
  return table(written(of, id)).at("rows");
}
std::string const none = frugal::html::no_value;

TEST_CASE("all trials have a row, the best first, and the winner has a mark") {
  SearchResults const of = synthetic::search(64);
  json const found = rows(of, "trials");
  CHECK(found.size() == 64);
  CHECK(row(written(of, "trials"), std::to_string(*of.winner))[0].at("mark") == "winner");
  CHECK(std::ranges::count_if(found, [](json const& each) { return each[0].is_object(); }) == 1);
  CHECK(std::ranges::count_if(found, [](json const& each) { return each[2] == "failed"; }) == 7);
  CHECK(table(written(of, "trials")).at("head") == json{"trial", "recipe", "state", "accuracy",
                                                        "lr", "width", "momentum", "norm", "rungs",
                                                        "samples", "time", "cost"});
  json const two = rows(synthetic::search(64, 2), "trials");
  CHECK(std::ranges::any_of(two, [](json const& each) {
    return each[0].is_object() && each[0].at("mark") == "Pareto front";
  }));
}

TEST_CASE("of more than a thousand trials the best thousand have a row, and the page says it") {
  json const found = written(synthetic::search(1100), "trials");
  CHECK(table(found).at("rows").size() == 1000);
  CHECK(says(found, "The best 1000 of 1100 trials."));
}

TEST_CASE("finalists have the mean of fresh seeds and the flattery") {
  SearchResults of = synthetic::search(64);
  json const found = rows(of, "finalists");
  CHECK(found.size() == 4);
  CHECK(table(written(of, "finalists")).at("head")[4] == "flattered by");
  json const winner = row(written(of, "finalists"), std::to_string(*of.winner));
  CHECK(winner[3] == "0.9261 \xc2\xb1 0.013");
  CHECK(winner[4] == "-0.032");
  CHECK(winner[5] == "3");
  of.history.trials.back().state = frugal::TrialState::failed;
  CHECK(has(rows(of, "finalists").dump(), "3 (1 without a value)"));
  CHECK(written(synthetic::search(9, 1, true), "finalists").is_null());
}

TEST_CASE("rungs have their cost, and repeats theirs") {
  SearchResults of = synthetic::search(64);
  json const found = rows(of, "rungs");
  CHECK(found.size() == 4);
  CHECK(found[0][0] == "1");
  CHECK(found[0][1] == "250");
  CHECK(found[0][2] == "57");
  CHECK(found[0][3] == "16");
  CHECK(found[3][0] == "other seeds");
  CHECK(found[3][1] == none);
  of.rungs.push_back({4000});
  CHECK(table(written(of, "rungs")).at("head")[0] == "bracket");
}

TEST_CASE("failed trials and dropped recipes come with their reasons") {
  SearchResults of = synthetic::search(64);
  for (auto& trial : of.history.trials) {
    if (!trial.outcome.empty()) trial.outcome = "<script>";
  }
  json const failed = rows(of, "failed");
  CHECK(failed.size() == 7);
  for (json const& each : failed) CHECK(each[2] == json{{"text", "<script>"}, {"wrap", true}});
  CHECK(written(of, "dropped").is_null());
  for (auto& trial : of.history.trials) trial.outcome.clear();
  CHECK(rows(of, "failed")[0][2].at("text") == "no reason is known");
}

TEST_CASE("without a price there is no column for it") {
  SearchResults of = synthetic::search(16);
  of.dollars_per_hour.reset();
  for (char const* id : {"trials", "rungs"}) {
    json const head = table(written(of, id)).at("head");
    CHECK(std::ranges::count(head, json("cost")) == 0);
  }
}

}  // namespace frugal_test::search_page_tables
