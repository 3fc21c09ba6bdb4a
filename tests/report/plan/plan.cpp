// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/plan/plan.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <sstream>

namespace frugal_test::plan_plan {

using namespace frugal::plan;
using frugal::plan::detail::text_of;

TEST_CASE("numbers are written for people, with their unit") {
  CHECK(text_of(1.3e9, Unit::count) == "1.3 G");
  CHECK(text_of(12, Unit::count) == "12");
  CHECK(text_of(999960, Unit::count) == "1.0 M");
  CHECK(text_of(5.2e9, Unit::bytes) == "5.2 GB");
  CHECK(text_of(37748, Unit::usd) == "$37,748.00");
  CHECK(text_of(905952, Unit::usd) == "$905,952.00");
  CHECK(text_of(1234567.891, Unit::usd) == "$1,234,567.89");
  CHECK(text_of(-999.5, Unit::usd) == "-$999.50");
  CHECK(text_of(0, Unit::usd) == "$0");
  CHECK(text_of(0.0042, Unit::usd) == "$0.0042");
  CHECK(text_of(0.526, Unit::usd_per_hour) == "$0.526/h");
  CHECK(text_of(0.8341, Unit::share) == "83.4 %");
  CHECK(text_of(0.0376, Unit::seconds) == "37.6 ms");
  CHECK(text_of(3220, Unit::seconds) == "3220 s");
  CHECK(text_of(72, Unit::hours) == "72.00 h");
  CHECK(text_of(1e21, Unit::flop) == "1e+21 FLOP");
  CHECK(text_of(0.05, Unit::per_hour) == "0.05 per hour");
  CHECK(text_of(std::numeric_limits<double>::infinity(), Unit::hours) == "never ends");
  CHECK(text_of(std::numeric_limits<double>::infinity(), Unit::per_hour) == "none");
  CHECK(text_of(std::numeric_limits<double>::max(), Unit::usd).size() > 300);
}

Plan example() {
  Plan plan;
  PlanSection& section = plan.add("Cost \"of\" a run");
  section.rows = {{"cost_per_run", 37748, Unit::usd, "8 devices"},
                  {"hours", std::numeric_limits<double>::infinity(), Unit::hours}};
  section.notes = {"A sentence."};
  return plan;
}

TEST_CASE("a table lines up its keys and values") {
  std::ostringstream out;
  out << example();
  CHECK(out.str() ==
        "Cost \"of\" a run\n"
        "  cost per run  $37,748.00  8 devices\n"
        "  hours         never ends\n"
        "  A sentence.\n");
}

TEST_CASE("the JSON has every number with its key and unit, and null for what has no end") {
  Plan plan = example();
  plan += example();
  auto const json = nlohmann::json::parse(plan.json());
  CHECK(json["version"] == 1);
  REQUIRE(json["sections"].size() == 2);
  auto const& section = json["sections"][1];
  CHECK(section["title"] == "Cost \"of\" a run");
  CHECK(section["rows"][0]["key"] == "cost_per_run");
  CHECK(section["rows"][0]["value"] == 37748);
  CHECK(section["rows"][0]["unit"] == "USD");
  CHECK(section["rows"][0]["note"] == "8 devices");
  CHECK(section["rows"][1]["value"].is_null());
  CHECK(section["notes"][0] == "A sentence.");
  CHECK(plan["cost_per_run"] == 37748);
  CHECK(std::isnan(plan["none"]));
}

}  // namespace frugal_test::plan_plan
