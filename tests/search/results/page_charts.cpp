// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/page_charts.hpp>

#include "support/page_data.hpp"
#include "support/search_synthetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_page_charts {

namespace html = frugal::html;
using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::TrialState;

using namespace page_data;

/// The chart that is written; null if there is none.
template <class Write>
json written(SearchResults const& of, Write const& write) {
  html::Page page;
  write(page, of, html::DrawnTrials(of));
  json const data = data_of(std::move(page));
  REQUIRE(data.at("parts").size() < 2);
  return data.at("parts").empty() ? json() : data.at("parts")[0];
}
std::size_t titles(json const& line) {
  return line.contains("titles") ? line.at("titles").size() : 0;
}
/// The lines of a kind, with a path or without.
std::vector<json> lines(json const& chart, std::string const& kind, bool path = true) {
  std::vector<json> found;
  for (json const& each : chart.at("lines")) {
    if (each.at("kind") == kind && each.at("path") == path) found.push_back(each);
  }
  return found;
}

TEST_CASE("of a few trials all are drawn, the best first, and failed ones last") {
  SearchResults const of = synthetic::search(64);
  html::DrawnTrials const drawn(of);
  CHECK(drawn.numbers == of.ranked());
  CHECK(drawn.failed_drawn == drawn.failed_ones);
  CHECK(drawn.failed_ones == 7);
  CHECK(drawn.notes().empty());
  CHECK(html::DrawnTrials(SearchResults{.domain = synthetic::domain()}).numbers.empty());
}

TEST_CASE("of many trials those that ended at their first rung are thinned, and no other ones") {
  SearchResults const of = synthetic::search(1000);
  html::DrawnTrials const drawn(of);
  std::set<std::size_t> const shown(drawn.numbers.begin(), drawn.numbers.end());
  CHECK(shown.size() == drawn.numbers.size());
  std::size_t short_ones = 0;
  for (std::size_t const number : of.ranked()) {
    auto const& trial = of.history.trials[number];
    if (trial.rungs.size() > 1) CHECK(shown.contains(number));
    if (trial.rungs.size() == 1) ++short_ones;
  }
  CHECK(drawn.short_ones == short_ones);
  CHECK(drawn.short_drawn == 250);
  CHECK(drawn.notes() ==
        std::vector<std::string>{
            "250 of the " + std::to_string(short_ones) +
            " trials that ended at their first rung are drawn, spread evenly over their ranks."});
  CHECK(shown.contains(*of.winner));
}

TEST_CASE("a trial's title has its settings and its values") {
  SearchResults of = synthetic::search(8, 2);
  std::string const title = html::trial_title(of, *of.winner);
  CHECK(title.starts_with("trial " + std::to_string(*of.winner) + ": "));
  CHECK(has(title, ", lr "));
  CHECK(has(title, ", accuracy 0."));
  CHECK(has(title, ", latency "));
  of.history.trials[*of.winner].state = TrialState::failed;
  CHECK(html::trial_title(of, *of.winner).ends_with(", failed"));
}

TEST_CASE("each trial has a line over its rungs, the winner the strongest, or a spot") {
  SearchResults const of = synthetic::search(64);
  json const chart = written(of, html::write_rung_curves);
  CHECK(chart.at("title") == "Accuracy by rung");
  CHECK(chart.at("note") == "higher is better");
  // 57 trials have a result: 16 went on, and 4 of these to the end, of which one is the winner.
  CHECK(lines(chart, "best").size() == 1);
  CHECK(lines(chart, "last").size() == 3);
  CHECK(lines(chart, "").size() == 12);
  CHECK(titles(lines(chart, "", false).at(0)) == 41);
  CHECK(lines(chart, "", false).at(0).at("value").size() == 41);
  json const winner = chart.at("lines").back();  // over all others
  CHECK(winner.at("kind") == "best");
  CHECK(winner.at("budget") == json{250, 1000, 4000});
  CHECK(winner.at("titles")[0] == html::trial_title(of, *of.winner));
  CHECK(chart.at("axes")[0].at("ticks") ==
        json::array({json{250, "250"}, json{1000, "1000"}, json{4000, "4000"}}));
  CHECK(chart.at("axes")[0].at("name") == "budget of the rung, steps");
  CHECK(chart.at("table").at("folded") == "Values of the best 16");
  CHECK(chart.at("table").at("rows").size() == 16);
}

TEST_CASE("without two rungs there are no curves, and a value that is not a number has no place") {
  SearchResults of = synthetic::search(3);
  for (SearchTrial& trial : of.history.trials) {
    if (trial.rungs.size() > 1) trial.rungs.resize(1);
  }
  of.order.clear();
  CHECK(written(of, html::write_rung_curves).is_null());
  CHECK(written(synthetic::search(9, 1, true), html::write_rung_curves).is_null());
  SearchResults nan = synthetic::search(64);
  nan.history.trials[*nan.winner].rungs[1].values = {std::nan("")};
  CHECK(written(nan, html::write_rung_curves).at("lines").back().at("budget") == json{250, 4000});
}

TEST_CASE("two objectives are a scatter with the Pareto front") {
  SearchResults const of = synthetic::search(96, 2);
  REQUIRE(of.front.size() > 1);
  json const chart = written(of, html::write_objectives);
  CHECK(chart.at("title") == "Latency against accuracy");
  CHECK(chart.at("note") == "better: right and down");
  CHECK(lines(chart, "edge").size() == 1);
  std::size_t complete = 0, with_value = 0, drawn = 0;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats || trial.rungs.empty()) continue;
    ++with_value;
    if (trial.state == TrialState::complete) ++complete;
  }
  std::map<std::string, std::size_t> spots;
  for (json const& each : chart.at("lines")) {
    if (each.at("path") == true) continue;
    CHECK(titles(each) == each.at("value").size());
    drawn += spots[each.at("kind")] = each.at("value").size();
  }
  CHECK(drawn == with_value);
  CHECK(spots["edge"] + spots["best"] >= of.front.size());
  CHECK(spots["last"] + of.front.size() >= complete);
  json const edge = lines(chart, "edge").at(0);
  for (std::size_t const number : of.front) {
    SearchTrial const& trial = of.history.trials[number];
    CHECK(std::ranges::any_of(edge.at("first"), [&](json const& each) {
      return each.get<double>() == doctest::Approx(*of.value(trial, 0));
    }));
  }
  CHECK(written(synthetic::search(64), html::write_objectives).is_null());
}

TEST_CASE("the Pareto front is steps, because nothing between two trials was reached") {
  SearchResults of{.domain = {.recipes = {"SGD"}}, .rungs = {{10}}};
  of.objectives = {{.name = "loss"}, {.name = "bytes"}};
  for (auto const& values : {std::vector<double>{1, 3}, {2, 1}}) {
    SearchTrial trial{.state = TrialState::complete};
    trial.rungs.push_back({.values = values});
    of.history.trials.push_back(trial);
  }
  of.front = {0, 1};
  // Up to the worse loss the fewest bytes are those of the better one: right, and then down.
  json const edge = lines(written(of, html::write_objectives), "edge").at(0);
  CHECK(edge.at("first") == json{1, 2, 2});
  CHECK(edge.at("value") == json{3, 3, 1});
  for (SearchTrial& trial : of.history.trials) trial.rungs[0].values[0] *= -1;
  of.objectives[0].maximise = true;
  std::swap(of.history.trials[0].rungs[0].values[1], of.history.trials[1].rungs[0].values[1]);
  json const other = lines(written(of, html::write_objectives), "edge").at(0);
  CHECK(other.at("first")[0] == other.at("first")[1]);  // up
  CHECK(other.at("value")[1] == other.at("value")[2]);  // and then right
}

TEST_CASE("the best value is drawn over dollars, or over seconds without a price") {
  SearchResults of = synthetic::search(64);
  auto const spending = [](html::Page& page, SearchResults const& results,
                           html::DrawnTrials const&) { html::write_spending(page, results); };
  json const money = written(of, spending);
  CHECK(money.at("title") == "Best accuracy by spending");
  CHECK(money.at("axes")[0].at("id") == "dollars");
  CHECK(money.at("columns")[0].at("id") == "seconds");
  json const& line = money.at("lines")[0];
  CHECK(line.at("dollars").back().get<double>() == doctest::Approx(*of.dollars()));
  CHECK(line.at("seconds").back().get<double>() == doctest::Approx(of.seconds()));
  CHECK(std::ranges::is_sorted(line.at("value")));
  of.dollars_per_hour.reset();
  CHECK(written(of, spending).at("axes")[0].at("id") == "seconds");
  CHECK(written(synthetic::search(9, 1, true), spending).is_null());
}

TEST_CASE("budgets have the unit of the rungs") {
  SearchResults of;
  CHECK(html::budget_text(of, 16000) == "16k");
  of.unit = "seconds";
  CHECK(html::budget_text(of, 90) == "1 min 30 s");
  of.unit = "dollars";
  CHECK(html::budget_text(of, 2) == "$2.00");
  CHECK(html::budget_unit(of).empty());
  of.unit = "cents";
  CHECK(html::budget_text(of, 250) == "$2.50");
  of.unit = "samples";
  CHECK(html::budget_unit(of) == ", samples");
  CHECK(html::reached_budgets(synthetic::search(64)) ==
        std::vector<std::uint64_t>{250, 1000, 4000});
}

}  // namespace frugal_test::search_page_charts

namespace frugal_test::search_page_parallel {

namespace html = frugal::html;
using namespace page_data;
using frugal::SearchResults;
using frugal::SearchTrial;

json written(SearchResults const& of) {
  html::Page page;
  html::write_parallel(page, of, html::DrawnTrials(of));
  auto const all = parts(data_of(std::move(page)), "parallel");
  return all.empty() ? json() : all[0];
}
std::size_t kinds(json const& of, std::string const& kind) {
  auto const& lines = of.at("lines");
  return static_cast<std::size_t>(
      std::ranges::count_if(lines, [&](json const& each) { return each.at("kind") == kind; }));
}

TEST_CASE("each axis has the range of its setting, or its names") {
  json const axes = written(synthetic::search(64)).at("axes");
  CHECK(
      axes ==
      json{{{"name", "recipe"}, {"names", {"AdamW + BF16", "SGD", "Lion + BF16"}}},
           {{"name", "lr"}, {"low", 0.0001}, {"high", 0.1}, {"log", true}, {"unit", "plain"}},
           {{"name", "width"}, {"low", 16}, {"high", 256}, {"log", false}, {"unit", "count"}},
           {{"name", "momentum"}, {"low", 0.5}, {"high", 0.99}, {"log", false}, {"unit", "plain"}},
           {{"name", "norm"}, {"names", {"none", "layer", "rms"}}},
           {{"name", "accuracy"}}});
}

TEST_CASE("each trial is a line, and skips settings that its recipe does not have") {
  SearchResults const of = synthetic::search(64);
  json const found = written(of);
  CHECK(found.at("lines").size() == 64);
  CHECK(kinds(found, "best") == 1);
  CHECK(found.at("lines").back().at("kind") == "best");  // over all others
  CHECK(kinds(found, "lost") == 7);
  for (char const* fifth : {"q0", "q1", "q2", "q3", "q4"}) {
    CHECK(kinds(found, fifth) >= 10);
    CHECK(kinds(found, fifth) <= 12);
  }
  for (json const& line : found.at("lines")) {
    std::size_t const number = line.at("number");
    SearchTrial const& trial = of.history.trials[number];
    CHECK(line.at("title") == html::trial_title(of, number));
    json const& values = line.at("values");
    CHECK(values[0] == trial.candidate.recipe);
    CHECK(values[1].get<double>() == doctest::Approx(*trial.candidate.values[0]));
    CHECK(values[3].is_null() == (trial.candidate.recipe != 1));
    CHECK(values[5].is_null() == trial.rungs.empty());
  }
}

TEST_CASE("axes of one value, and pictures of nothing, are left out") {
  SearchResults of = synthetic::search(8);
  of.domain.recipes = {"SGD"};
  of.domain.settings = {{.name = "norm", .values = frugal::Choice{{"none"}}}};
  for (SearchTrial& trial : of.history.trials) trial.candidate = {.recipe = 0, .values = {0.0}};
  of.require();
  CHECK(written(of).is_null());
  SearchResults nothing = synthetic::search(8);
  nothing.history.trials.clear();
  CHECK(written(nothing).is_null());
  json const failed = written(synthetic::search(9, 1, true));
  CHECK(kinds(failed, "lost") == 9);
  CHECK(failed.at("axes").size() == 5);  // none has a value
  CHECK(!failed.contains("notes"));
}

}  // namespace frugal_test::search_page_parallel
