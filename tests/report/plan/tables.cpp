// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/tables.hpp>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

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
