// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/page_charts.hpp>

#include "support/search_synthetic.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_page_charts {

namespace html = frugal::html;
using frugal::SearchResults;
using frugal::SearchTrial;
using frugal::TrialState;

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}
bool has(std::string const& text, std::string const& part) { return count(text, part) > 0; }

template <class Write>
std::string written(SearchResults const& of, Write const& write) {
  html::Page page;
  write(page, of, html::DrawnTrials(of));
  return page.text();
}

TEST_CASE("each trial has a line over its rungs, the winner the strongest, or a spot") {
  SearchResults const of = synthetic::search(64);
  std::string const text = written(of, html::write_rung_curves);
  CHECK(has(text, "<h3>Accuracy by rung</h3><span class=\"note\">higher is better</span>"));
  // 57 trials have a result: 16 went on, and 4 of these to the end, of which one is the winner.
  CHECK(count(text, "<path class=\"run best\"") == 1);
  CHECK(count(text, "<path class=\"run last\"") == 3);
  CHECK(count(text, "<path class=\"run\"") == 12);
  CHECK(count(text, "<circle class=\"spot\"") == 41);
  CHECK(count(text, "<circle class=\"spot best\"") == 3);
  for (char const* budget : {">250<", ">1000<", ">4000<"}) CHECK(has(text, budget));
  CHECK(has(text, "budget of the rung, steps"));
  CHECK(has(text, "<summary>Values of the best 16</summary>"));
}

TEST_CASE("rungs a factor apart are drawn at equal distances") {
  SearchResults const of = synthetic::search(64);
  std::string const text = written(of, html::write_rung_curves);
  std::size_t const at = text.find("<path class=\"run best\" d=\"M70 ");
  REQUIRE(at != text.npos);
  std::string const line = text.substr(at, 100);
  CHECK(has(line, "L226."));  // the middle of 70 and 384 is 227
  CHECK(has(line, "L384 "));
}

TEST_CASE("without two rungs there are no curves, and a value that is not a number has no place") {
  SearchResults of = synthetic::search(3);
  for (SearchTrial& trial : of.history.trials) {
    if (trial.rungs.size() > 1) trial.rungs.resize(1);
  }
  of.order.clear();
  CHECK(written(of, html::write_rung_curves).empty());
  CHECK(written(synthetic::search(9, 1, true), html::write_rung_curves).empty());
  SearchResults nan = synthetic::search(64);
  nan.history.trials[*nan.winner].rungs[1].values = {std::nan("")};
  std::string const text = written(nan, html::write_rung_curves);
  CHECK(count(text, "<circle class=\"spot best\"") == 2);
  CHECK(!has(text, "nan"));
}

TEST_CASE("two objectives are a scatter with the Pareto front") {
  SearchResults const of = synthetic::search(96, 2);
  REQUIRE(of.front.size() > 1);
  std::string const text = written(of, html::write_objectives);
  CHECK(has(text,
            "<h3>Latency against accuracy</h3><span class=\"note\">better: right and down</span>"));
  CHECK(count(text, "<path class=\"edge\"") == 1);
  CHECK(count(text, "class=\"spot edged\"") + count(text, "<circle class=\"spot best\"") >=
        of.front.size());
  std::size_t complete = 0, with_value = 0;
  for (SearchTrial const& trial : of.history.trials) {
    if (trial.repeats || trial.rungs.empty()) continue;
    ++with_value;
    if (trial.state == TrialState::complete) ++complete;
  }
  CHECK(count(text, "<circle class=\"spot\" cx=\"1") +
            count(text, "<circle class=\"spot\" cx=\"2") >
        0);
  CHECK(count(text, "<title>trial ") == with_value);
  CHECK(count(text, "<circle class=\"spot last\"") + of.front.size() >= complete);
  CHECK(written(synthetic::search(64), html::write_objectives).empty());
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
  std::string const text = written(of, html::write_objectives);
  std::size_t const at = text.find("<path class=\"edge\" d=\"M");
  REQUIRE(at != text.npos);
  std::string const line = text.substr(at, text.find("\">", at) - at);
  CHECK(line.find('H') < line.find('V'));
  for (SearchTrial& trial : of.history.trials) trial.rungs[0].values[0] *= -1;
  of.objectives[0].maximise = true;
  std::swap(of.history.trials[0].rungs[0].values[1], of.history.trials[1].rungs[0].values[1]);
  std::string const other = written(of, html::write_objectives);
  std::size_t const there = other.find("<path class=\"edge\" d=\"M");
  REQUIRE(there != other.npos);
  std::string const up = other.substr(there, other.find("\">", there) - there);
  CHECK(up.find('V') < up.find('H'));
}

TEST_CASE("the best value is drawn over dollars, or over seconds without a price") {
  SearchResults of = synthetic::search(64);
  auto const spending = [](html::Page& page, SearchResults const& results,
                           html::DrawnTrials const&) { html::write_spending(page, results); };
  std::string const money = written(of, spending);
  CHECK(has(money, "Best accuracy by spending over dollars spent"));
  CHECK(has(money, "by-dollars"));
  of.dollars_per_hour.reset();
  std::string const time = written(of, spending);
  CHECK(has(time, "by-seconds"));
  CHECK(!has(time, "$"));
  CHECK(written(synthetic::search(9, 1, true), spending).empty());
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
using frugal::SearchResults;
using frugal::SearchTrial;

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}

std::string written(SearchResults const& of) {
  html::Page page;
  html::write_parallel(page, of, html::DrawnTrials(of));
  return page.text();
}

TEST_CASE("places on an axis are linear, or logarithmic where the setting is") {
  CHECK(html::place_of(frugal::Uniform{2, 6}, 3) == doctest::Approx(0.25));
  CHECK(html::place_of(frugal::LogUniform{1e-4, 1}, 0.01) == doctest::Approx(0.5));
  CHECK(html::place_of(frugal::Int{0, 10, 5, false}, 5) == doctest::Approx(0.5));
  CHECK(html::place_of(frugal::Int{1, 16, 1, true}, 4) == doctest::Approx(0.5));
  CHECK(html::place_of(frugal::Choice{{"a", "b"}}, 1) == doctest::Approx(0.75));
  CHECK(html::place_of(frugal::Uniform{2, 2}, 2) == 0.5);
}

TEST_CASE("an axis is labelled at both ends and between them, each name where it is") {
  auto const labels = [](frugal::Distribution const& of) {
    std::vector<std::string> all;
    double before = -1;
    for (html::PlotTick const& each : html::axis_ticks(of)) {
      CHECK(each.at >= 0);
      CHECK(each.at <= 1);
      CHECK(each.at != before);
      before = each.at;
      all.push_back(each.label);
    }
    return all;
  };
  CHECK(labels(frugal::LogUniform{1e-4, 1e-1}) ==
        std::vector<std::string>{"0.0001", "0.1", "0.001", "0.01"});
  CHECK(labels(frugal::Int{16, 256, 16, false}) ==
        std::vector<std::string>{"16", "256", "100", "200"});
  CHECK(labels(frugal::Choice{{"x", "a very long name of a choice"}}) ==
        std::vector<std::string>{"x", "a very long nam \xe2\x80\xa6"});
  CHECK(labels(frugal::Uniform{3, 3}) == std::vector<std::string>{"3"});
  CHECK(labels(frugal::Choice{std::vector<std::string>({"1",  "2",  "3",  "4",  "5",  "6",  "7",
                                                        "8",  "9",  "10", "11", "12", "13", "14",
                                                        "15", "16", "17", "18", "19", "20"})})
            .size() == 10);
}

TEST_CASE("each trial is a line, and skips settings that its recipe does not have") {
  SearchResults const of = synthetic::search(64);
  std::string const text = written(of);
  CHECK(count(text, "<path class=\"run ") == 64);
  CHECK(count(text, "<path class=\"run best\"") == 1);
  CHECK(count(text, "<path class=\"run lost\"") == 7);
  for (char const* fifth : {"q0", "q1", "q2", "q3", "q4"}) {
    std::size_t const lines = count(text, "<path class=\"run " + std::string(fifth));
    CHECK(lines >= 10);
    CHECK(lines <= 12);
  }
  CHECK(count(text, "class=\"name\"") == 6);  // recipe, four settings, accuracy
  for (std::size_t number = 0; number < 64; ++number) {
    SearchTrial const& trial = of.history.trials[number];
    std::size_t const title = text.find("<title>trial " + std::to_string(number) + ": ");
    REQUIRE(title != text.npos);
    std::size_t const begin = text.rfind(" d=\"", title);
    std::string const line = text.substr(begin, title - begin);
    std::size_t const settings = trial.candidate.recipe == 1 ? 4 : 3;
    CHECK(count(line, "L") == settings + (trial.rungs.empty() ? 0 : 1));
  }
}

TEST_CASE("axes of one value, and pictures of nothing, are left out") {
  SearchResults of = synthetic::search(8);
  of.domain.recipes = {"SGD"};
  of.domain.settings = {{.name = "norm", .values = frugal::Choice{{"none"}}}};
  for (SearchTrial& trial : of.history.trials) trial.candidate = {.recipe = 0, .values = {0.0}};
  of.require();
  CHECK(written(of).empty());
  SearchResults nothing = synthetic::search(8);
  nothing.history.trials.clear();
  CHECK(written(nothing).empty());
  std::string const failed = written(synthetic::search(9, 1, true));
  CHECK(count(failed, "<path class=\"run lost\"") == 9);
  CHECK(count(failed, "class=\"name\"") == 5);  // none has a value
  CHECK(count(failed, "Colours are ranks") == 0);
}

TEST_CASE("names are escaped") {
  SearchResults of = synthetic::search(8);
  of.domain.recipes[1] = "<b>&";
  of.domain.settings[0].name = "<i>\"";
  std::string const text = written(of);
  CHECK(count(text, "<b>") == 0);
  CHECK(count(text, "<i>") == 0);
  CHECK(count(text, "&lt;b&gt;&amp;") > 0);
}

}  // namespace frugal_test::search_page_parallel
