// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/results/page_plot.hpp>

#include "support/search_synthetic.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::search_page_plot {

namespace html = frugal::html;
using frugal::SearchResults;
using frugal::TrialState;

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("of a few trials all are drawn, the best first, and failed ones last") {
  SearchResults const of = synthetic::search(64);
  html::DrawnTrials const drawn(of);
  CHECK(drawn.numbers == of.ranked());
  CHECK(drawn.failed_drawn == drawn.failed_ones);
  CHECK(drawn.failed_ones == 7);
  CHECK(drawn.note().empty());
  CHECK(!drawn.is_dense());
  CHECK(html::DrawnTrials(SearchResults{.domain = synthetic::domain()}).numbers.empty());
}

TEST_CASE("of many trials those that ended at their first rung are thinned, and no other ones") {
  SearchResults const of = synthetic::search(1000);
  html::DrawnTrials const drawn(of);
  std::set<std::size_t> const shown(drawn.numbers.begin(), drawn.numbers.end());
  CHECK(shown.size() == drawn.numbers.size());
  CHECK(drawn.is_dense());
  std::size_t short_ones = 0;
  for (std::size_t const number : of.ranked()) {
    auto const& trial = of.history.trials[number];
    if (trial.rungs.size() > 1) CHECK(shown.contains(number));
    if (trial.rungs.size() == 1) ++short_ones;
  }
  CHECK(drawn.short_ones == short_ones);
  CHECK(drawn.short_drawn == 250);
  CHECK(drawn.note() ==
        "250 of the " + std::to_string(short_ones) +
            " trials that ended at their first rung are drawn, spread evenly over their ranks.");
  CHECK(shown.contains(*of.winner));
}

TEST_CASE("a trial's title has its settings and its values, escaped") {
  SearchResults of = synthetic::search(8, 2);
  of.domain.recipes[0] = "<AdamW>";
  of.domain.recipes[1] = "<SGD>";
  of.domain.recipes[2] = "<Lion>";
  std::string const title = html::trial_title(of, *of.winner);
  CHECK(title.starts_with("trial " + std::to_string(*of.winner) + ": &lt;"));
  CHECK(has(title, ", lr "));
  CHECK(has(title, ", accuracy 0."));
  CHECK(has(title, ", latency "));
  of.history.trials[*of.winner].state = TrialState::failed;
  CHECK(html::trial_title(of, *of.winner).ends_with(", failed"));
}

TEST_CASE("an objective that spans decades has a logarithmic axis") {
  CHECK(html::objective_scale({0.1, 10}).logarithmic());
  CHECK(!html::objective_scale({0.5, 0.9}).logarithmic());
  CHECK(!html::objective_scale({-10, 1000}).logarithmic());
  CHECK(html::objective_scale({}).low() == 0);
  CHECK(html::objective_scale({0.5, 0.9, -1e300, 1e300}).high() < 2);
  CHECK(html::objective_scale({0.5, 0.9, 1e300}).at(1e300) == 1);
}

TEST_CASE("a picture has a title, a description, and labels that stay within it") {
  std::string out;
  html::SearchPlot const plot(out, "id", "a < b", "note");
  plot.legend({{"run best", "winner"}, {"spot", "other"}});
  plot.begin({{0, "1"}, {0.5, "500"}, {1, "250000"}}, "steps & more", html::objective_scale({0, 1}),
             "two \"lines\"");
  plot.spot(100, 50, "spot", "trial 1");
  plot.path("M1 2L3 4", "run", "trial 2");
  plot.end();
  plot.end_figure();
  CHECK(has(out, "<h3>a &lt; b</h3>"));
  CHECK(has(out, "aria-labelledby=\"id-t id-d\"><title id=\"id-t\">a &lt; b</title>"));
  CHECK(has(out, "two &quot;lines&quot;</desc>"));
  CHECK(has(out, ">steps &amp; more</text>"));
  CHECK(has(out, "x=\"398\" y=\"192\" text-anchor=\"end\">250000</text>"));
  CHECK(
      has(out,
          "<circle class=\"spot\" cx=\"100\" cy=\"50\" r=\"2.5\"><title>trial 1</title></circle>"));
  CHECK(has(out, "<path class=\"run\" d=\"M1 2L3 4\"><title>trial 2</title></path>"));
  CHECK(has(out, "<path d=\"M0 3H22\" class=\"run best\"/>"));
  CHECK(out.ends_with("</svg>\n</figure>\n"));
}

TEST_CASE("more labels than fit are left out or hidden on small screens") {
  std::vector<html::PlotTick> ticks;
  for (std::size_t i = 0; i < 40; ++i) ticks.push_back({static_cast<double>(i) / 40, "100000"});
  std::string out;
  html::SearchPlot const plot(out, "id", "a", "");
  plot.begin(ticks, "x", html::objective_scale({0, 1}), "");
  std::size_t count = 0, hidden = 0;
  for (std::size_t at = 0; (at = out.find(">100000<", at)) != out.npos; ++at) ++count;
  for (std::size_t at = 0; (at = out.find("tick other", at)) != out.npos; ++at) ++hidden;
  CHECK(count <= 8);
  CHECK(hidden == count / 2);
}

TEST_CASE("coordinates are short") {
  CHECK(html::place_text(12.345) == "12.3");
  CHECK(html::place_text(7) == "7");
  CHECK(html::place_text(-0.01) == "0");
}

}  // namespace frugal_test::search_page_plot
