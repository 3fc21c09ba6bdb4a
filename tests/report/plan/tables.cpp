// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/prices.hpp>
#include <frugal/report/plan/tables.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

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

/// What a single lever on a cost saves, as a share.
double saved(Usd before, Usd after) {
  Breakdown made(RunCost::from_total(before, 8, 72));
  made.add({.name = "all", .term = Term::price, .factor = after / before});
  CHECK(made.after().total().value() == Approx(after.value()));
  return made.saved_share();
}

TEST_CASE("the figures of the worked case that follow from the others do") {
  Breakdown const made = worked_case();
  auto const& steps = made.steps();
  REQUIRE(steps.size() == 5);
  CHECK((steps[0].cost.total() / 12).value() == Approx(75496));  // a month
  CHECK(steps[0].cost.total().value() == Approx(905952));        // a year
  CHECK(steps[1].cost.per_run().value() == Approx(13512));
  CHECK(steps[1].saved / steps[0].cost.total() == Approx(0.64).epsilon(0.01));
  CHECK(steps[2].cost.hours == Approx(48));
  CHECK(steps[2].cost.per_run().value() == Approx(9008));
  CHECK(steps[3].cost.hours == Approx(40));
  CHECK(steps[3].cost.per_run().value() == Approx(7506.67).epsilon(1e-6));
  CHECK(steps[4].cost.runs == Approx(20));
  CHECK(made.after().total().value() == Approx(150133.33));
  CHECK(made.saved_share() == Approx(0.834).epsilon(1e-3));
}

// Given: $21,800 a month, -71 %, and $18,200 a run, -52 %, $436,800 a year.
TEST_CASE("the totals of the worked case do not follow from its levers, as docs/plan.md says") {
  Breakdown const made = worked_case();
  CHECK((made.after().total() / 12).value() == Approx(12511.11).epsilon(1e-6));
  CHECK(saved(Usd(75496), Usd(21800)) == Approx(0.711).epsilon(1e-3));
  CHECK(saved(Usd(37748), Usd(18200)) == Approx(0.518).epsilon(1e-3));
  CHECK(RunCost::from_total(Usd(18200), 8, 40, 24).total().value() == Approx(436800));
  CHECK(RunCost::from_total(Usd(18200), 8, 40, 2).total().value() == Approx(36400));  // a month
}

TEST_CASE("$4,512 of early stopping is a rounded price times the hours that BF16 saves in a run") {
  auto const steps = worked_case().steps();
  CHECK(steps[4].saved.value() == Approx(4 * 7506.67).epsilon(1e-6));  // four runs
  CHECK((steps[1].cost.per_run() - steps[2].cost.per_run()).value() == Approx(4504));
  double const hours = steps[1].cost.hours - steps[2].cost.hours;
  double const price = steps[1].cost.per_hour().value();
  CHECK(price == Approx(187.667).epsilon(1e-5));
  CHECK(hours * std::round(price) == Approx(4512));
}

TEST_CASE("a batch larger by 25 % takes 38.4 h where the worked case has 40 h") {
  Breakdown made(RunCost{.price = PricePerDevice(1), .devices = 8, .hours = 48});
  made.add({.name = "recompute", .term = Term::hours, .factor = 1 / 1.25});
  CHECK(made.after().hours == Approx(38.4));
}

TEST_CASE("the worked case's price is 16 times that of the node it names, and its spot another") {
  Offer const node = PriceTable::built_in().offer("p4d.24xlarge");
  CHECK(worked_case().before().price / node.on_demand.per_device() == Approx(16).epsilon(1e-3));
  CHECK(worked_case().before().price.value() == Approx(65.53).epsilon(1e-4));
  CHECK(node.on_demand.per_device().value() == Approx(4.10).epsilon(1e-3));
  CHECK(1 - node.spot->per_node() / node.on_demand.per_node() == Approx(0.70).epsilon(1e-2));
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

namespace frugal_test::plan_run_cost {

using namespace frugal::plan;
using doctest::Approx;

constexpr RunCost node{.price = PricePerDevice(4), .devices = 8, .hours = 72, .runs = 24};
static_assert(node.per_hour() == Usd(32));
static_assert(node.per_run_hours() == DeviceHours(576));
static_assert(node.per_run() == Usd(2304));
static_assert(node.total() == Usd(55296));
static_assert(RunCost{}.total() == Usd(0));

TEST_CASE("a cost of a run gives the price that it implies") {
  RunCost const run = RunCost::from_total(Usd(37748), 8, 72, 24);
  CHECK(run.price.value() == Approx(65.53).epsilon(1e-3));
  CHECK(run.per_run().value() == Approx(37748));
  CHECK(run.total().value() == Approx(905952));
}

TEST_CASE("what is negative, or without devices, is refused") {
  CHECK_THROWS_AS((RunCost{.price = PricePerDevice(-1)}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS((RunCost{.devices = 0}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS((RunCost{.hours = -1}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS((RunCost{.runs = -1}.checked()), frugal::SettingsError);
  CHECK_THROWS_AS(RunCost::from_total(Usd(1), 0, 1), frugal::SettingsError);
  CHECK_THROWS_WITH_AS(RunCost::from_total(Usd(-1), 8, 1), doctest::Contains("cost of a run"),
                       frugal::SettingsError);
  CHECK(RunCost::from_total(Usd(0), 8, 1).total() == Usd(0));
}

}  // namespace frugal_test::plan_run_cost

namespace frugal_test::plan_tables {

using namespace frugal::plan;
using doctest::Approx;

std::string text_of(Plan const& plan) {
  std::ostringstream out;
  out << plan;
  return out.str();
}

TEST_CASE("both allocations are there, how far they are from each other, and which to take") {
  Plan const plan = plan_of(optimal_plan(1e21));
  CHECK(plan["rule_parameters"] * plan["rule_tokens"] * 6 == Approx(1e21));
  CHECK(plan["fit_over_budget"] == Approx(2.651).epsilon(1e-3));
  CHECK(plan["parameters_ratio"] * plan["tokens_ratio"] == Approx(plan["fit_over_budget"]));
  // The warning is next to the numbers that it is about, not after the comparison.
  PlanSection const& fit = plan.sections.at(2);
  CHECK(fit.rows.front().key == "fit_parameters");
  CHECK(fit.notes == std::vector<std::string>{"These coefficients ask for 2.651 times the compute "
                                              "that there is. Plan with the rule."});
  CHECK(fit.rows.back().note == "6ND: 2.651 of the budget");
  // Coefficients that can be afforded have no warning: a b = 1/6, and the exponents add up to 1.
  Plan const own = plan_of(optimal_plan(1e21, {.a = 0.1, .alpha = 0.5, .b = 1 / 0.6, .beta = 0.5}));
  CHECK(own.sections.at(2).notes.empty());
}

TEST_CASE("with devices both allocations have their hours, and with a price their cost") {
  OptimalPlan const got = optimal_plan(1e21);
  CHECK(std::isnan(plan_of(got)["rule_device_hours"]));
  Spending on{.speed = {.peak = 312e12, .utilisation = 0.3}};
  Plan plan = plan_of(got, on);
  CHECK(plan["rule_device_hours"] == Approx(1e21 / (312e12 * 0.3) / 3600));
  CHECK(plan["fit_device_hours"] == Approx(plan["fit_compute"] / (312e12 * 0.3) / 3600));
  CHECK(std::isnan(plan["rule_cost"]));
  on.price = PricePerDevice(4);
  plan = plan_of(got, on);
  CHECK(plan["rule_cost"] == Approx(4 * plan["rule_device_hours"]));
  CHECK(plan["fit_cost"] == Approx(4 * plan["fit_device_hours"]));
  on.price = PricePerDevice(-1);
  CHECK_THROWS_AS(plan_of(got, on), frugal::SettingsError);
}

TEST_CASE("a checkpoint interval has hours if the work is known") {
  CheckpointInputs in{.save = Seconds(60), .lifetime = Seconds(21600), .hours = 72};
  CHECK(plan_of(in)["hours"] == Approx(72 * (1 + plan_of(in)["overhead"])));
  CHECK(plan_of(in)["lost_hours"] == estimate(in).lost_hours);
  in.hours = 0;
  CHECK(std::isnan(plan_of(in)["hours"]));
  CHECK(plan_of(in)["overhead"] > 0);
}

TEST_CASE("a breakdown has a row for each lever, with what it saves") {
  Breakdown made(RunCost{.price = PricePerDevice(2), .devices = 8, .hours = 10},
                 "Before and after");
  made.add({.name = "BF16", .factor = 0.5});
  Plan const plan = plan_of(made);
  CHECK(plan["baseline"] == 160);
  CHECK(plan["+ BF16"] == 80);
  CHECK(plan["saved_share"] == 0.5);
  CHECK(text_of(plan).find("saves $80.00; hours per run, assumed") != std::string::npos);
}

TEST_CASE("cost, memory, all-reduce and spot have their totals") {
  CHECK(plan_of(RunCost{.price = PricePerDevice(4), .devices = 8, .hours = 72})["cost"] == 2304);
  MemoryInputs const memory{.parameters = 1e9, .per = bytes_per_parameter(Keeping::fp32, 8)};
  CHECK(plan_of(estimate(memory))["memory"] == 16e9);
  DataParallel const job{.devices = 8,
                         .parameters = 1.3e9,
                         .bandwidth = GigabytesPerSecond(75),
                         .samples_per_second = 850,
                         .samples = 32};
  CHECK(plan_of(job)["efficiency"] == Approx(0.2368).epsilon(1e-3));
  CHECK(plan_of(job)["samples_for_80_percent"] == plan_of(job, "tokens")["tokens_for_80_percent"]);
  SpotInputs spot{.hours = 10,
                  .on_demand = PricePerDevice(4),
                  .spot = PricePerDevice(1),
                  .preemptions_per_hour = 0.1,
                  .save = Seconds(10)};
  CHECK(plan_of(spot)["spot_saving"] > 0.7);
  CHECK(text_of(plan_of(spot)).find("No preemptions are assumed") == std::string::npos);
  spot.preemptions_per_hour = 0;
  CHECK(text_of(plan_of(spot)).find("No preemptions are assumed") != std::string::npos);
  spot.preemptions_per_hour = 60;
  spot.restart = Seconds(600);
  CHECK(text_of(plan_of(spot)).find("On demand is cheaper") != std::string::npos);
  spot.notice = true;
  CHECK(text_of(plan_of(spot)).find("the run never ends") != std::string::npos);
}

TEST_CASE("an all-reduce is shown without overlap and with it, whichever the job has") {
  DataParallel job{.devices = 8,
                   .parameters = 1.3e9,
                   .gradients = GradientFormat::BF16,
                   .bandwidth = GigabytesPerSecond(75),
                   .samples_per_second = 850,
                   .samples = 32};
  Plan plan = plan_of(job);
  CHECK(plan["efficiency"] == plan["efficiency_without_overlap"]);
  CHECK(plan["efficiency_without_overlap"] == Approx(0.383).epsilon(1e-3));  // docs/plan.md
  CHECK(plan["efficiency_with_overlap"] == Approx(0.514).epsilon(1e-3));
  job.overlap = 1;
  plan = plan_of(job);
  CHECK(plan["efficiency"] == plan["efficiency_with_overlap"]);
  CHECK(plan["efficiency_without_overlap"] == Approx(0.383).epsilon(1e-3));
  CHECK(plan["efficiency_with_overlap"] == Approx(0.621).epsilon(1e-3));
}

}  // namespace frugal_test::plan_tables
