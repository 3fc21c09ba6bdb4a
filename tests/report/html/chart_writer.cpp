// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/chart_writer.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace frugal_test::html_chart_writer {

using namespace frugal::html;

std::string figure(Chart const& chart) {
  std::string out;
  ChartWriter(out, chart, 7).write();
  return out;
}
bool has(std::string const& text, std::string_view what) { return text.find(what) != text.npos; }

Point at(double step, double value) { return {.step = step, .seconds = step, .value = value}; }

TEST_CASE("a figure has a picture per axis, a slider with a name, a table and the values") {
  std::string const html = figure({.title = "Loss & more",
                                   .lines = {{"a", {at(0, 2), at(1, 1)}}},
                                   .axes = {Axis::step, Axis::seconds}});
  CHECK(html.starts_with("<figure class=\"chart\" id=\"c7\">"));
  CHECK(has(html, "<h3>Loss &amp; more</h3>"));
  CHECK(has(html, "id=\"c7-step-t\""));
  CHECK(has(html, "id=\"c7-seconds-t\""));
  CHECK(has(html, "aria-label=\"Loss &amp; more: point to read\""));
  CHECK(has(html, "<details><summary>Values</summary>"));
  CHECK(has(html, "<script type=\"application/json\">"));
  CHECK(has(html, "<p class=\"legend\">last <b>1</b></p>"));
}

TEST_CASE("the legend has each line's dashes, colour, name and last value") {
  std::string const html =
      figure({.title = "Loss",
              .lines = {{"a", {at(0, 2), at(1, 1)}, 0, 0}, {"b", {at(0, 3)}, 9, 6}, {"c", {}}}});
  CHECK(has(html, "class=\"line s0 d0\"/></svg>a <b>1</b>"));
  CHECK(has(html, "class=\"line s1 d2\"/></svg>b <b>3</b>"));
  CHECK(has(html, "</svg>c <b>" + std::string(no_value) + "</b>"));
}

TEST_CASE("a logarithmic chart says so") {
  Chart chart{.title = "Norm", .lines = {{"a", {at(0, 1), at(1, 31)}}}, .may_be_logarithmic = true};
  CHECK(has(figure(chart), ">logarithmic</span>"));
  chart.lines[0].points[0].value = 2;  // a factor of 15.5
  CHECK_FALSE(has(figure(chart), ">logarithmic</span>"));
}

}  // namespace frugal_test::html_chart_writer
