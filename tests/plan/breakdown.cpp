// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/plan/breakdown.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <limits>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

namespace frugal_test::plan_breakdown {

using namespace frugal_test::support;
using namespace frugal::plan;
using doctest::Approx;

/// The published worked case, of which docs/plan.md traces every figure.
Breakdown worked_case() {
  Breakdown breakdown(RunCost::from_total(Usd(37748), 8, 72, 24), "worked case");
  breakdown.add({.name = "spot", .term = Term::price, .factor = 13512.0 / 37748})
      .add({.name = "BF16", .term = Term::hours, .factor = 48.0 / 72})
      .add({.name = "recompute", .term = Term::hours, .factor = 40.0 / 48})
      .add({.name = "early stopping", .term = Term::runs, .factor = 20.0 / 24});
  return breakdown;
}

TEST_CASE("the figures of the worked case that follow from the others do") {
  Breakdown const made = worked_case();
  auto const& steps = made.steps();
  REQUIRE(steps.size() == 5);
  CHECK((steps[0].cost.total() / 12).value() == Approx(75496));  // a month
  CHECK(steps[0].cost.total().value() == Approx(905952));        // a year
  CHECK(steps[1].cost.per_run().value() == Approx(13512));
  CHECK(1 - 13512.0 / 37748 == Approx(0.64).epsilon(0.01));
  CHECK(steps[2].cost.hours == Approx(48));
  CHECK(steps[2].cost.per_run().value() == Approx(9008));
  CHECK(steps[3].cost.hours == Approx(40));
  CHECK(steps[3].cost.per_run().value() == Approx(7506.67).epsilon(1e-6));
  CHECK(steps[4].cost.runs == Approx(20));
  CHECK(made.after().total().value() == Approx(150133.33));
}

TEST_CASE("the figures of the worked case that do not follow are what docs/plan.md says") {
  Breakdown const made = worked_case();
  // Given: $21,800 a month, -71 %, and $18,200 a run, -52 %, $436,800 a year. The levers give:
  CHECK((made.after().total() / 12).value() == Approx(12511.11).epsilon(1e-6));
  CHECK(made.saved_share() == Approx(0.834).epsilon(1e-3));
  CHECK(21800 / 75496.0 == Approx(1 - 0.711).epsilon(1e-3));
  CHECK(18200 * 24 == 436800);
  CHECK(18200 * 2 != 21800);
  // Early stopping is given as about $4,512; it saves four runs. The amount is 24 h at $188.
  CHECK(made.steps()[4].saved.value() == Approx(4 * 7506.67).epsilon(1e-6));
  CHECK((made.steps()[2].saved / 24).value() == Approx(4512).epsilon(0.002));
  // A batch larger by 25 % alone would be 38.4 h.
  CHECK(48 / 1.25 == Approx(38.4));
  // The price is 16 times that of the node it names: $32.77 for eight devices.
  CHECK(made.before().price / per_device(PricePerNode(32.77), 8) == Approx(16).epsilon(1e-3));
}

TEST_CASE("each lever changes one term, and together they save the same in any order") {
  RunCost const before{.price = PricePerDevice(2), .devices = 4, .hours = 10, .runs = 3};
  Lever const price{.name = "a", .term = Term::price, .factor = 0.5};
  Lever const hours{.name = "b", .term = Term::hours, .factor = 0.75};
  Lever const runs{.name = "c", .term = Term::runs, .factor = 0.9};
  Breakdown const one = Breakdown(before).add(price).add(hours).add(runs);
  Breakdown const other = Breakdown(before).add(runs).add(price).add(hours);
  CHECK(one.after().total().value() == Approx(other.after().total().value()));
  CHECK(one.after().total().value() == Approx(240 * 0.5 * 0.75 * 0.9));
  CHECK(one.after().price == PricePerDevice(1));
  CHECK(one.after().hours == 7.5);
  CHECK(one.after().devices == 4);
  Usd sum;
  for (auto const& step : one.steps()) sum += step.saved;
  CHECK(sum.value() == Approx(one.saved().value()));
}

TEST_CASE("a lever may cost, nothing saves nothing, and a free run has no share") {
  Breakdown slower(RunCost{.price = PricePerDevice(1), .hours = 1});
  slower.add({.name = "recompute alone", .term = Term::hours, .factor = 1.3});
  CHECK(slower.saved().value() == Approx(-0.3));
  CHECK(Breakdown(RunCost{}).saved_share() == 0);
  CHECK_THROWS_WITH_AS(slower.add({.name = "spot", .factor = -0.5}),
                       doctest::Contains("factor of spot"), frugal::SettingsError);
  CHECK_THROWS_AS(slower.add({.name = "x", .factor = std::numeric_limits<double>::quiet_NaN()}),
                  frugal::SettingsError);
  CHECK(slower.steps().size() == 2);
}

TEST_CASE("levers.json has each step's total, and the file is whole or not there") {
  Breakdown made(RunCost{.price = PricePerDevice(2), .devices = 8, .hours = 10, .runs = 2},
                 "a \"t\"");
  made.add({.name = "BF16", .factor = 0.5, .evidence = Evidence::measured, .note = "bench"});
  TemporaryFolder const folder;
  made.write(folder / "levers.json");
  auto const json = nlohmann::json::parse(text_of(folder / "levers.json"));
  CHECK(json["version"] == 1);
  CHECK(json["currency"] == "USD");
  CHECK(json["unit"] == "USD");
  CHECK(json["title"] == "a \"t\"");
  REQUIRE(json["steps"].size() == 2);
  CHECK(json["steps"][0]["name"] == "baseline");
  CHECK(json["steps"][0]["value"] == 320);
  CHECK(json["steps"][0]["hours"] == 20);
  CHECK(json["steps"][1]["name"] == "+ BF16");
  CHECK(json["steps"][1]["value"] == 160);
  CHECK(json["steps"][1]["note"] == "hours per run, measured: bench");
  CHECK(support::entries(folder.path()) == 1);
  CHECK_THROWS_AS(made.write(folder / "none" / "levers.json"), frugal::StoreError);
}

}  // namespace frugal_test::plan_breakdown
