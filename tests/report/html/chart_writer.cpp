// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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

namespace frugal_test::html_chart_values {

using namespace frugal::html;
using nlohmann::json;

std::string table_of(Chart const& chart) {
  std::string out;
  ChartValues(out, chart).table();
  return out;
}
json json_of(Chart const& chart) {
  std::string out;
  ChartValues(out, chart).json();
  std::string_view const head = "<script type=\"application/json\">", tail = "</script>\n";
  REQUIRE(out.starts_with(head));
  REQUIRE(out.ends_with(tail));
  std::string const text = out.substr(head.size(), out.size() - head.size() - tail.size());
  CHECK(text.find('<') == text.npos);
  return json::parse(text);
}
std::size_t rows(std::string const& table) {
  std::size_t count = 0;
  for (std::size_t at = table.find("<tr>"); at != table.npos; at = table.find("<tr>", at + 1)) {
    ++count;
  }
  return count - 1;  // the head
}
bool has(std::string const& text, std::string_view what) { return text.find(what) != text.npos; }

Point at(double step, double value) { return {.step = step, .seconds = step / 2, .value = value}; }

TEST_CASE("lines share a row where they share a step, and have a dash elsewhere") {
  std::string const table =
      table_of({.title = "Loss", .lines = {{"a", {at(1, 5), at(2, 6)}}, {"b", {at(2, 7)}}}});
  CHECK(rows(table) == 2);
  CHECK(has(table, "<th scope=\"row\">1</th><td>500 ms</td><td>5</td><td>" + std::string(no_value) +
                       "</td>"));
  CHECK(has(table, "<th scope=\"row\">2</th><td>1 s</td><td>6</td><td>7</td>"));
}

TEST_CASE("a long line has 24 rows, the first and the last point among them") {
  ChartLine line{.name = "a", .points = {}};
  for (int i = 0; i < 1000; ++i) line.points.push_back(at(i, i));
  std::string const table = table_of({.title = "Loss", .lines = {line}});
  CHECK(rows(table) == 24);
  CHECK(has(table, "<tr><th scope=\"row\">0</th>"));
  CHECK(has(table, "<tr><th scope=\"row\">999</th>"));
}

TEST_CASE("a chart over time alone has a row for each time and no steps") {
  std::string const table = table_of({.title = "Memory",
                                      .lines = {{"memory",
                                                 {{.step = 9, .seconds = 0.1, .value = 1},
                                                  {.step = 9, .seconds = 0.2, .value = 2}}}},
                                      .axes = {Axis::seconds}});
  CHECK(rows(table) == 2);
  CHECK_FALSE(has(table, ">step<"));
  CHECK(has(table, "<tr><th scope=\"row\">100 ms</th><td>1</td></tr>"));
}

TEST_CASE("the script gets every axis, null for what is unknown, and any name") {
  json const made = json_of({.title = "Loss",
                             .unit = Unit::bytes,
                             .lines = {{"</script>\"", {at(2, 7)}, 9}},
                             .axes = {Axis::step, Axis::seconds, Axis::dollars}});
  CHECK(made.at("unit") == "bytes");
  json const& line = made.at("lines").at(0);
  CHECK(line.at("name") == "</script>\"");
  CHECK(line.at("colour") == 1);
  CHECK(line.at("step") == json::array({2}));
  CHECK(line.at("seconds") == json::array({1}));
  CHECK(line.at("dollars").at(0).is_null());
  CHECK(line.at("value") == json::array({7}));
}

TEST_CASE("steps beyond ten million are whole, and other values have seven digits") {
  json const made = json_of({.title = "Loss", .lines = {{"a", {at(12'345'679, 0.123456789)}}}});
  CHECK(made.at("lines").at(0).at("step") == json::array({12'345'679}));
  CHECK(made.at("lines").at(0).at("value") == json::array({0.1234568}));
}

}  // namespace frugal_test::html_chart_values
