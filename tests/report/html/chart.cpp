// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/chart.hpp>

#include "support/page_data.hpp"

#include <limits>
#include <string>
#include <utility>

namespace frugal_test::html_chart {

using namespace frugal::html;
using namespace page_data;

json drawn(Chart const& chart) {
  Page page;
  write_chart(page, chart);
  return parts(data_of(std::move(page)), "chart").at(0);
}
Point at(double step, double value) { return {.step = step, .seconds = step / 2, .value = value}; }

TEST_CASE("a line has its values and its place on each axis, null for what is unknown") {
  json const made = drawn({.title = "Loss </script>",
                           .unit = Unit::bytes,
                           .lines = {{"a \"", {at(2, 7), at(4, 8)}, 9}},
                           .axes = {step_axis(), seconds_axis(), dollars_axis()},
                           .marks = {{.step = 3, .seconds = 1.5}}});
  CHECK(made.at("title") == "Loss </script>");
  CHECK(made.at("unit") == "bytes");
  json const& line = made.at("lines").at(0);
  CHECK(line == json{{"name", "a \""},
                     {"color", 9},
                     {"step", {2, 4}},
                     {"seconds", {1, 2}},
                     {"dollars", {nullptr, nullptr}},
                     {"value", {7, 8}}});
  CHECK(made.at("axes").at(1) ==
        json{{"id", "seconds"}, {"name", "training time"}, {"unit", "seconds"}});
  CHECK(made.at("marks") == json{{{"step", 3}, {"seconds", 1.5}, {"dollars", nullptr}}});
  for (char const* absent : {"zero", "log", "note", "about", "legend", "table", "notes", "id"}) {
    CHECK(!made.contains(absent));
  }
}

TEST_CASE("how a chart is drawn is in its data") {
  json const made =
      drawn({.title = "Norm",
             .lines = {{"a", {at(0, 1)}}},
             .axes = {{.id = "x", .name = "X", .loose = true, .ticks = {{250, "250"}}}},
             .columns = {seconds_axis()},
             .from_zero = true,
             .may_be_logarithmic = true,
             .note = "note"});
  CHECK(made.at("zero") == true);
  CHECK(made.at("log") == true);
  CHECK(made.at("note") == "note");
  CHECK(made.at("axes").at(0).at("loose") == true);
  CHECK(made.at("axes").at(0).at("ticks") == json{{250, "250"}});
  CHECK(made.at("columns").at(0).at("id") == "seconds");
  CHECK(made.at("lines").at(0).at("seconds") == json::array({0}));
}

TEST_CASE("lines of a legend have a kind, titles and spots instead of a name") {
  json const made =
      drawn({.title = "Trials",
             .lines = {{.points = {at(0, 1), at(1, 2)}, .kind = "best", .titles = {"trial 1"}},
                       {.points = {at(0, 1)}, .titles = {"trial 2"}, .dot = 2.5, .path = false}},
             .legend = {{"best", "winner"}, {"", "other", true}},
             .id = "trials",
             .about = "two trials",
             .notes = {"all are drawn"},
             .table = Table{.title = "T", .head = {"h"}, .rows = {{"c"}}}});
  json const& best = made.at("lines").at(0);
  CHECK(best.at("kind") == "best");
  CHECK(best.at("titles") == json{"trial 1"});
  CHECK(!best.contains("name"));
  CHECK(made.at("lines").at(1).at("path") == false);
  CHECK(made.at("lines").at(1).at("dot") == 2.5);
  CHECK(made.at("legend").at(1) == json{{"kind", ""}, {"name", "other"}, {"spot", true}});
  CHECK(made.at("id") == "trials");
  CHECK(made.at("about") == "two trials");
  CHECK(made.at("notes") == json{"all are drawn"});
  CHECK(made.at("table").at("rows") == json{{"c"}});
}

TEST_CASE("a whole number has all its digits for the script, another one seven") {
  CHECK(json_number(12'345'678) == "12345678");
  CHECK(json_number(-0x1p52) == "-4503599627370496");
  CHECK(json_number(-0.0) == "0");
  CHECK(json_number(1.0 / 3) == "0.3333333");
  CHECK(json_number(12345678.5) == "1.234568e+07");
  CHECK(json_number(1e300) == "1e+300");
  CHECK(json_number(std::numeric_limits<double>::quiet_NaN()) == "null");
}

}  // namespace frugal_test::html_chart
