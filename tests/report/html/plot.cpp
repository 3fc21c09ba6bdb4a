// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/plot.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace frugal_test::html_plot {

using namespace frugal::html;

std::string plotted(Chart const& chart, Axis axis = Axis::step) {
  std::string out;
  Plot(out, chart, "c1").write(axis);
  return out;
}
bool has(std::string const& text, std::string_view what) { return text.find(what) != text.npos; }

Point at(double step, double value) {
  return {.step = step, .seconds = 2 * step, .dollars = step / 100, .value = value};
}

TEST_CASE("a line goes from the lower left to the upper right of the plot's area") {
  std::string const svg = plotted({.title = "Loss", .lines = {{"a", {at(0, 0), at(10, 4)}}}});
  // 400 x 219, with 70 on the left, 16 on the right, 10 above and 43 below.
  CHECK(has(svg, "<path d=\"M70 176L384 10\" class=\"line s0 d0\"/>"));
  CHECK(has(svg, "data-x=\"0 10 70 384\""));
  CHECK(has(svg, "data-y=\"0 4 176 10 0\""));
  CHECK(has(svg, "<title id=\"c1-step-t\">Loss over step</title>"));
  CHECK(has(svg, "a: from 0 to 4; lowest 0, highest 4."));
}

TEST_CASE("each axis has its own picture, and a point without a place on it is left out") {
  Chart chart{.title = "Loss",
              .lines = {{"a", {at(1, 3), at(2, 2), at(3, 1)}}},
              .axes = {Axis::step, Axis::seconds, Axis::dollars}};
  CHECK(has(plotted(chart, Axis::seconds), "data-x=\"0 6 70 384\""));
  CHECK(has(plotted(chart, Axis::dollars), "id=\"c1-dollars-t\">Loss over dollars spent"));
  chart.lines[0].points[1].dollars = std::numeric_limits<double>::quiet_NaN();
  std::string const svg = plotted(chart, Axis::dollars);
  CHECK_FALSE(has(svg, "nan"));
  std::size_t dots = 0;
  for (std::size_t i = svg.find("<circle"); i != svg.npos; i = svg.find("<circle", i + 1)) ++dots;
  CHECK(dots == 2);
}

TEST_CASE("a logarithmic axis puts a power of ten in the middle of its neighbours") {
  std::string const svg = plotted({.title = "Norm",
                                   .lines = {{"a", {at(0, 1), at(1, 10), at(2, 100)}}},
                                   .may_be_logarithmic = true});
  CHECK(has(svg, "M70 176L227 93L384 10"));
  CHECK(has(svg, "data-y=\"1 100 176 10 1\""));
}

TEST_CASE("up to four lines have their names at their ends, apart from each other") {
  Chart chart{.title = "Loss"};
  for (std::size_t i = 0; i < 4; ++i) {
    chart.lines.push_back({"run " + std::to_string(i), {at(0, 1), at(1, 1)}, i, i});
  }
  std::string svg = plotted(chart);
  double before = -100;
  for (std::size_t i = 0; i < 4; ++i) {
    std::string const label = "\">run " + std::to_string(i) + "</text>";
    std::size_t const end = svg.find(label), begin = svg.rfind("y=\"", end) + 3;
    REQUIRE(end != svg.npos);
    double const y = std::stod(svg.substr(begin, end - begin));
    CHECK(std::abs(y - before) >= 14);
    CHECK(y <= 178);
    before = y;
  }
  chart.lines.push_back({"run 4", {at(0, 1), at(1, 1)}, 4, 0});
  svg = plotted(chart);
  CHECK_FALSE(has(svg, "class=\"label"));
}

TEST_CASE("labels that would not fit in large texts are marked, every other one") {
  auto const others = [](std::string const& svg) {
    std::size_t count = 0;
    for (std::size_t i = svg.find("tick other"); i != svg.npos; i = svg.find("tick other", i + 1))
      ++count;
    return count;
  };
  Chart chart{.title = "Loss", .lines = {{"a", {at(0, 1), at(400, 2)}}}};
  CHECK(others(plotted(chart)) == 0);        // 0, 100, 200, 300, 400
  chart.lines[0].points[1].dollars = 0.002;  // $0, $0.0005, $0.0010, $0.0015, $0.0020
  CHECK(others(plotted(chart, Axis::dollars)) == 2);
}

TEST_CASE("names are escaped, and nothing to draw is an empty plot") {
  std::string const svg = plotted({.title = "<b>", .lines = {{"a&b", {at(0, 1), at(1, 2)}}}});
  CHECK(has(svg, "&lt;b&gt; over step"));
  CHECK(has(svg, "a&amp;b: from"));
  CHECK_FALSE(has(plotted({.title = "None"}), "class=\"line"));
  CHECK_FALSE(has(plotted({.title = "None", .lines = {{"a", {}}}}), "nan"));
}

}  // namespace frugal_test::html_plot
