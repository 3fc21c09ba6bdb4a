// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/recipe_plan.hpp>

#include <cmath>

namespace frugal_test::plan_recipe_plan {

using namespace frugal::plan;
using doctest::Approx;

/// 1.3e9 parameters; 7200 steps of 36 s are 72 h.
RecipeRun job() {
  return {.parameters = 1.3e9,
          .trained = 1.3e9,
          .checkpoint_bytes = 15.6e9,
          .steps = 7200,
          .step = Seconds(36),
          .samples = 32};
}

TEST_CASE("what is not known is left out") {
  CHECK(plan_of(RecipeRun{}).sections.empty());
  CHECK(plan_of(job()).sections.empty());
  CHECK(job().hours() == 72);
  RecipeRun in = job();
  in.step.reset();
  in.devices = 8;
  in.link = GigabytesPerSecond(75);
  CHECK_FALSE(in.hours().has_value());
  CHECK(plan_of(in).sections.empty());
}

TEST_CASE("a checkpoint takes its bytes by the disk, unless its time is given") {
  RecipeRun in = job();
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
  RecipeRun in = job();
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
  RecipeRun in = job();
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
  RecipeRun in = job();
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

}  // namespace frugal_test::plan_recipe_plan
