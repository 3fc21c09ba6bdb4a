// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/optimize/group_schedule.hpp>

#include "policy/optimize/named_parts.hpp"

#include <string>
#include <vector>

namespace frugal_test::policy_optimize_group_schedule {

using namespace frugal_test::policy_optimize;
using namespace frugal::literals;
using frugal::AdamW;
using frugal::group_by_pattern;
using frugal::GroupSchedule;
using frugal::Optimize;
using frugal::Schedule;
using frugal::SGD;

TEST_CASE("curves are laid over the run, and a function is taken as it is") {
  frugal::RunLimits const ten{.total_steps = 10};
  GroupSchedule const curves = Schedule<frugal::Warmup<4>, frugal::Linear>{};
  auto const laid = curves.over(ten);
  CHECK(laid.factor(0) == 0.25);
  CHECK(laid.factor(3) == 1.0);
  CHECK(laid.factor(7) == 0.5);
  CHECK(laid.outlook.empty());
  GroupSchedule const function = [](std::uint64_t step) { return 1.0 / (1.0 + double(step)); };
  CHECK(function.over(ten).factor(3) == 0.25);
  CHECK(function);
  CHECK_FALSE(GroupSchedule());
}

TEST_CASE("a curve to the end of a run without a known end is refused") {
  GroupSchedule const curves = Schedule<frugal::Cosine>{};
  CHECK_THROWS_AS(curves.over({}), frugal::SettingsError);
}

auto with_schedule(GroupSchedule schedule) {
  return Optimize<SGD>{.lr = 1.0,
                       .groups = {group_by_pattern("b", {.schedule = std::move(schedule)})}};
}

TEST_CASE("curves that the run does not come to are a warning that names the group") {
  auto const warnings = [](GroupSchedule schedule) {
    frugal::Trainer trainer{tree_of({"a", "b"}), Linear{}, frugal::Settings{},
                            with_schedule(std::move(schedule))};
    return trainer.fit(gradients_of_one(2, 5)).warnings;
  };
  auto const late = warnings(Schedule<frugal::Warmup<100>, frugal::Constant<>>{});
  REQUIRE(late.size() == 1);
  CHECK(contains(late[0], "the schedule of parameter group 'b': Warmup"));
  CHECK(contains(late[0], "ends at step 100"));
  CHECK(warnings(Schedule<frugal::Warmup<2>, frugal::Constant<>>{}).empty());
}

TEST_CASE("a factor that is negative or not finite is refused before the step that has it") {
  for (double const bad : {-1.0, std::nan(""), HUGE_VAL}) {
    auto const module = tree_of({"a", "b"});
    std::string const text = error_of<frugal::SettingsError>([&] {
      frugal::Trainer{module, Linear{}, frugal::Settings{},
                      with_schedule([bad](std::uint64_t step) { return step == 2 ? bad : 0.5; })}
          .fit(gradients_of_one(2, 5));
    });
    CHECK(contains(text, "the schedule of parameter group 'b' gives the factor"));
    CHECK(contains(text, "before step 2"));
    // No parameter made the step, also not the one without a schedule.
    CHECK(module->parameters()[0].item<double>() == 1.0 - 2);
    CHECK(module->parameters()[1].item<double>() == 1.0 - 1);
  }
}

TEST_CASE("a resumed run with schedules of groups ends with the same bits, and logs the same") {
  Optimize<AdamW> const policy{
      .lr = 1e-2,
      .groups = {
          frugal::layer_wise_rate("encoder.layer.{}.", 0.8),
          group_by_pattern("head.*", {.schedule = Schedule<frugal::Warmup<5>, frugal::Linear>{}}),
          group_by_pattern("encoder.*", {.beta1 = 0.5}), frugal::no_decay_for_biases_and_norms()}};
  Schedule<frugal::Cosine> const schedule;
  auto const tables = named_job().tables();
  std::map<std::uint64_t, Frozen> saved;
  auto const whole = named_job().module();
  Rates all;
  frugal::Trainer{whole,    Linear{},     frugal::Settings{},          policy,
                  schedule, logging(all), Resume{.after_step = &saved}}
      .fit(tables);
  for (std::uint64_t const step : {1U, 7U, 19U}) {
    auto const resumed = named_job().module();
    Rates rest;
    frugal::Trainer{resumed,
                    Linear{},
                    frugal::Settings{},
                    policy,
                    schedule,
                    logging(rest),
                    Resume{.from = &saved.at(step)}}
        .fit(tables);
    CHECK(same_bits(tensors_of(*resumed), tensors_of(*whole)));
    CHECK(rest == Rates(all.begin() + static_cast<std::ptrdiff_t>(step), all.end()));
  }
}

TEST_CASE("`learning_rate` in the log is that of the first parameter's group, schedule included") {
  std::vector<double> shown;
  RecordCall const call = [&](frugal::MetricRecord const& record) {
    if (record.kind == frugal::RecordKind::step) shown.push_back(*record.number("learning_rate"));
  };
  frugal::Trainer{tree_of({"a", "b"}), Linear{}, frugal::Settings{},
                  Optimize<SGD>{.lr = 8.0,
                                .groups = {group_by_pattern(
                                    "a", {.schedule = Schedule<frugal::StepDecay<1, 0.5_r>>{}})}},
                  EachStep{.call = call}}
      .fit(gradients_of_one(2, 3));
  CHECK(shown == std::vector<double>{8, 4, 2});
}

}  // namespace frugal_test::policy_optimize_group_schedule
