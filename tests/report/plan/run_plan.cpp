// SPDX-License-Identifier: Apache-2.0
// torch-free

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>

#include <frugal/error.hpp>
#include <frugal/report/plan/run_plan.hpp>

namespace frugal_test::plan_run_plan {

using namespace frugal::plan;
using doctest::Approx;

RunInputs job() {
  return {.parameters = 1.3e9,
          .tokens = 26e9,
          .device = DeviceTable::built_in().at("A100 40GB"),
          .devices = 8};
}

bool says(Plan const& plan, std::string_view sentence) {
  for (PlanSection const& section : plan.sections) {
    for (std::string const& note : section.notes) {
      if (note.find(sentence) != std::string::npos) return true;
    }
  }
  return false;
}

TEST_CASE("a run by hand: 6ND over eight devices at 30 % of 312 TFLOP/s") {
  Plan const plan = plan_of(job());
  CHECK(plan["compute"] == Approx(6 * 1.3e9 * 26e9));
  CHECK(plan["hours"] == Approx(6 * 1.3e9 * 26e9 / (8 * 312e12 * 0.3) / 3600));
  CHECK(plan["device_hours"] == Approx(8 * plan["hours"]));
  CHECK(plan["memory"] == Approx(18 * 1.3e9));
  CHECK(plan["checkpoint_size"] == Approx(12 * 1.3e9));
  CHECK(plan["save_time"] == Approx(15.6));  // at 1 GB/s
  RunInputs by_rule = job();
  by_rule.tokens = 0;
  CHECK(plan_of(by_rule)["tokens"] == Approx(26e9));
}

TEST_CASE("without a price there are hours and no dollars, and with one both") {
  CHECK(std::isnan(plan_of(job())["cost"]));
  RunInputs in = job();
  in.on_demand = Price(PricePerNode(32.0), 8);
  Plan const plan = plan_of(in);
  CHECK(plan["cost"] == Approx(32 * plan["hours"]));
  CHECK(std::isnan(plan["spot_cost"]));
  in.spot = Price(PricePerNode(8.0), 8);
  in.preemptions_per_hour = 0.05;
  Plan const spot = plan_of(in);
  CHECK(spot["spot_cost"] < spot["on_demand_cost"] / 2);
  CHECK(spot["spot_hours"] > spot["hours"]);
  CHECK(spot["daly_interval"] < spot["young_interval"]);
  CHECK(spot["checkpoint_interval"] == Approx(spot["daly_interval"]));
}

TEST_CASE("twelve devices on nodes of eight are two nodes") {
  RunInputs in = job();
  in.devices = 12;
  in.on_demand = Price(PricePerNode(32.0), 8);
  Plan const plan = plan_of(in);
  CHECK(plan["billed_devices"] == 16);
  CHECK(plan["cost"] == Approx(2 * 32 * plan["hours"]));
}

TEST_CASE("spot bills the nodes of its own price, and on demand those of its own") {
  RunInputs in = job();
  in.devices = 12;
  in.disk = GigabytesPerSecond(1e9);  // a checkpoint takes no time to speak of
  in.on_demand = Price(PricePerDevice(4.0), 8);
  in.spot = Price(PricePerNode(12.8), 8);
  Plan plan = plan_of(in);
  CHECK(plan["on_demand_cost"] == Approx(4 * 12 * plan["hours"]));
  CHECK(plan["spot_cost"] == Approx(2 * 12.8 * plan["hours"]));
  in.on_demand = Price(PricePerNode(32.0), 8);
  in.spot = Price(PricePerDevice(1.6), 8);
  plan = plan_of(in);
  CHECK(plan["on_demand_cost"] == Approx(2 * 32 * plan["hours"]));
  CHECK(plan["spot_cost"] == Approx(1.6 * 12 * plan["hours"]));
}

TEST_CASE("communication makes a run longer, and one device communicates nothing") {
  RunInputs in = job();
  in.link = in_bytes(GigabitsPerSecond(400));
  in.tokens_per_step = 8192;
  Plan const plan = plan_of(in);
  CHECK(plan["efficiency"] < 1);
  CHECK(plan["hours"] == Approx(plan_of(job())["hours"] / plan["efficiency"]));
  CHECK_FALSE(says(plan, "One device"));
  in.devices = 1;
  CHECK(std::isnan(plan_of(in)["efficiency"]));
  CHECK(says(plan_of(in), "One device sends no gradients"));
}

TEST_CASE("a run that does not fit says so, and a wrong input is an error") {
  RunInputs in = job();
  in.on_demand = Price(PricePerDevice(4.0), 8);  // without a price, a note says so
  CHECK_FALSE(says(plan_of(in), "More than the device has"));
  in.activations = 40e9;
  CHECK(says(plan_of(in), "More than the device has: shard, freeze or use Recompute."));
  in.format = "FP64";
  CHECK_THROWS_AS(plan_of(in), frugal::SettingsError);
  in = job();
  in.optimizer = "AdanW";
  CHECK_THROWS_AS(plan_of(in), frugal::SettingsError);
  in = job();
  in.parameters = 0;
  CHECK_THROWS_AS(plan_of(in), frugal::SettingsError);
  in = job();
  in.devices = 1.5;
  CHECK_THROWS_WITH_AS(plan_of(in), doctest::Contains("a whole number"), frugal::SettingsError);
}

TEST_CASE("a negative input or NaN is an error, and not what is left out") {
  double const nan = std::nan("");
  for (double const bad : {-1.0, nan}) {
    RunInputs in = job();
    in.tokens = bad;
    CHECK_THROWS_WITH_AS(plan_of(in), doctest::Contains("tokens"), frugal::SettingsError);
    in = job();
    in.link = GigabytesPerSecond(bad);
    CHECK_THROWS_WITH_AS(plan_of(in), doctest::Contains("bandwidth"), frugal::SettingsError);
    in = job();
    in.preemptions_per_hour = bad;
    CHECK_THROWS_WITH_AS(plan_of(in), doctest::Contains("preemptions"), frugal::SettingsError);
  }
  RunInputs in = job();
  in.link = GigabytesPerSecond(50);
  CHECK_THROWS_WITH_AS(plan_of(in), doctest::Contains("tokens per step"), frugal::SettingsError);
}

/// 1.3e9 parameters; 7200 steps of 36 s are 72 h.
RecipeRun measured_job() {
  return {.parameters = 1.3e9,
          .trained = 1.3e9,
          .checkpoint_bytes = 15.6e9,
          .steps = 7200,
          .step = Seconds(36),
          .samples = 32};
}

TEST_CASE("what is not known is left out") {
  CHECK(plan_of(RecipeRun{}).sections.empty());
  CHECK(plan_of(measured_job()).sections.empty());
  CHECK(measured_job().hours() == 72);
  RecipeRun in = measured_job();
  in.step.reset();
  in.devices = 8;
  in.link = GigabytesPerSecond(75);
  CHECK_FALSE(in.hours().has_value());
  CHECK(plan_of(in).sections.empty());
}

TEST_CASE("a checkpoint takes its bytes by the disk, unless its time is given") {
  RecipeRun in = measured_job();
  in.lifetime = Seconds(36000);
  CHECK(plan_of(in)["save_time"] == Approx(15.6));
  in.disk = GigabytesPerSecond(2);
  CHECK(plan_of(in)["save_time"] == Approx(7.8));
  in.save = Seconds(30);
  Plan const plan = plan_of(in);
  CHECK(plan["daly_interval"] == daly_interval(30, 36000));
  CHECK(plan["young_interval"] == young_interval(30, 36000));
  CHECK(plan["lost_hours"] > 0);
}

TEST_CASE("spot is that of plan_of(SpotInputs)") {
  RecipeRun in = measured_job();
  in.devices = 8;
  in.lifetime = Seconds(36000);
  in.save = Seconds(30);
  in.on_demand = PricePerDevice(4);
  in.spot = PricePerDevice(1.6);
  SpotInputs const same{.hours = 72,
                        .devices = 8,
                        .on_demand = PricePerDevice(4),
                        .spot = PricePerDevice(1.6),
                        .preemptions_per_hour = 0.1,
                        .save = Seconds(30),
                        .restart = Seconds(300)};
  CHECK(plan_of(in)["spot_cost"] == plan_of(same)["spot_cost"]);
  CHECK(plan_of(in)["break_even_rate"] == plan_of(same)["break_even_rate"]);
  in.on_demand = PricePerDevice(0);
  CHECK(std::isnan(plan_of(in)["spot_cost"]));
}

TEST_CASE("a link adds what communication no overlap hides to each step") {
  RecipeRun in = measured_job();
  in.step = Seconds(32 / 850.0);  // docs/plan.md: 850 samples/s, 8 devices, 600 Gbit/s
  in.devices = 8;
  in.link = GigabytesPerSecond(75);
  CHECK(plan_of(in)["efficiency"] == Approx(0.2368).epsilon(1e-3));
  CHECK(*in.hours() == Approx(7200 * 32 / 850.0 / 0.23680 / 3600).epsilon(1e-3));
  in.gradients = GradientFormat::BF16;
  in.overlap = 1;
  CHECK(plan_of(in)["efficiency"] == Approx(0.621).epsilon(1e-3));
  in.devices = 1;
  CHECK(in.exposed() == Seconds(0));
  CHECK(std::isnan(plan_of(in)["efficiency"]));
}

TEST_CASE("tokens give the compute-optimal model of the same compute") {
  RecipeRun in = measured_job();
  in.tokens_per_sample = 26e9 / (7200 * 32);  // 20 for each parameter
  Plan plan = plan_of(in);
  CHECK(plan["tokens"] == Approx(26e9));
  CHECK(plan["parameters_over_rule"] == Approx(1));
  CHECK(plan["rule_parameters"] == Approx(1.3e9));
  CHECK(plan["fit_over_budget"] == Approx(2.65).epsilon(1e-2));
  CHECK(plan.sections.front().notes.front().find("Close to the rule") == 0);
  in.tokens_per_sample /= 16;
  plan = plan_of(in);
  CHECK(plan["parameters_over_rule"] == Approx(4));
  CHECK(plan.sections.front().notes.front().find("A smaller model") == 0);
  in.tokens_per_sample *= 256;
  CHECK(plan_of(in).sections.front().notes.front().find("A larger model") == 0);
  in.tokens_per_sample = -1;
  CHECK_THROWS_AS(plan_of(in), frugal::SettingsError);
}

}  // namespace frugal_test::plan_run_plan
