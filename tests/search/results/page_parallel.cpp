// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/page_parallel.hpp>

#include "support/search_synthetic.hpp"

#include <cstddef>
#include <string>
#include <vector>

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
