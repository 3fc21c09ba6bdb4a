// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "policy/optimize/fixture.hpp"
#include "policy/optimize/named_parts.hpp"

#include <string>
#include <vector>

#include <frugal/policy/optimize/groups.hpp>

namespace frugal_test::policy_optimize_groups {

using namespace frugal_test::policy_optimize;
using frugal::Optimize;
using frugal::ParameterGroup;
using frugal::SGD;

ParameterGroup selecting(std::string const& wanted, double lr) {
  return {.name = wanted,
          .selects = [wanted](std::string_view name, at::Tensor const&) { return name == wanted; },
          .lr = lr};
}

/// Each parameter's movement in one step of gradient 1: its learning rate.
std::vector<double> rates(std::vector<ParameterGroup> groups) {
  auto const module = std::make_shared<Parts>(
      std::vector<at::Tensor>{at::zeros({1}), at::zeros({1}), at::zeros({1})});
  frugal::Trainer trainer{module, Linear{}, frugal::Settings{},
                          Optimize<SGD>{.lr = 1.0, .groups = std::move(groups)}};
  static_cast<void>(
      trainer.fit(std::vector<Table>{{{at::ones({1}), at::ones({1}), at::ones({1})}}}));
  std::vector<double> moved;
  for (at::Tensor const& each : module->parameters()) moved.push_back(-each.item<double>());
  return moved;
}

/// What loggers show of a run with these groups.
std::optional<double> shown(std::vector<ParameterGroup> groups) {
  std::vector<std::optional<double>> found;
  frugal::Trainer trainer{
      std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1}), at::zeros({1})}), Linear{},
      frugal::Settings{}, Optimize<SGD>{.lr = 1.0, .groups = std::move(groups)},
      RateShown{.found = &found}};
  static_cast<void>(trainer.fit(std::vector<Table>{{{at::ones({1}), at::ones({1})}}}));
  return found.at(0);
}

std::string refusal(std::vector<ParameterGroup> groups) {
  return error_of<frugal::SettingsError>([&] { rates(std::move(groups)); });
}

TEST_CASE("a parameter that no group selects uses the optimizer's own settings") {
  CHECK(rates({selecting("p1", 0.5)}) == std::vector<double>{1.0, 0.5, 1.0});
}

/// Every parameter.
ParameterGroup all(std::string name) {
  return {.name = std::move(name),
          .selects = [](std::string_view, at::Tensor const&) { return true; }};
}

TEST_CASE("two groups that give a parameter two rates are refused, and both are named") {
  ParameterGroup other = all("all");
  other.lr = 0.25;
  std::string const text = refusal({selecting("p1", 0.5), other});
  CHECK(contains(text, "parameter groups 'p1' and 'all' both give 'p1' its lr"));
  CHECK(contains(text, "0.5 and 0.25"));
  other.lr = 0.5;
  CHECK(rates({selecting("p1", 0.5), other}) == std::vector<double>{0.5, 0.5, 0.5});
}

TEST_CASE("a parameter in two groups has what each of them sets, in either order") {
  // SGD's L2: (gradient 1 + decay * weight 1) * rate. Without the second group, a decay of 0.
  ParameterGroup decays = all("all");
  decays.weight_decay = 0.5;
  for (auto const& groups : {std::vector<ParameterGroup>{selecting("p1", 0.5), decays},
                             std::vector<ParameterGroup>{decays, selecting("p1", 0.5)}}) {
    auto const module =
        std::make_shared<Parts>(std::vector<at::Tensor>{at::ones({1}), at::ones({1})});
    frugal::Trainer trainer{module, Linear{}, frugal::Settings{},
                            Optimize<SGD>{.lr = 1.0, .groups = groups}};
    static_cast<void>(trainer.fit(std::vector<Table>{{{at::ones({1}), at::ones({1})}}}));
    CHECK(module->parameters()[0].item<double>() == 1 - 1.5);
    CHECK(module->parameters()[1].item<double>() == 1 - 1.5 * 0.5);
  }
}

TEST_CASE("a group without its own rate has the optimizer's") {
  CHECK(rates({all("every one")}) == std::vector<double>{1.0, 1.0, 1.0});
}

TEST_CASE("loggers show the rate of the first parameter's group") {
  CHECK(shown({}) == 1.0);
  CHECK(shown({selecting("p1", 0.5)}) == 1.0);
  CHECK(shown({selecting("p1", 0.5), selecting("p0", 0.25)}) == 0.25);
  CHECK(shown({all("every one")}) == 1.0);
}

TEST_CASE("a group that selects nothing is refused, with the names that there are") {
  std::string const text = refusal({selecting("p1", 0.5), selecting("head.weight", 0.5)});
  CHECK(contains(text, "parameter group 'head.weight' selects nothing"));
  CHECK(contains(text, "Optimize::groups[1]"));
  CHECK(contains(text, "p0 p1 p2"));
  CHECK(contains(refusal({ParameterGroup{.name = "no function", .selects = {}}}), "no function"));
}

TEST_CASE("a group's settings out of range are refused and the group is named") {
  std::string const rate = refusal({selecting("p0", 0.5), selecting("p1", -0.5)});
  CHECK(contains(rate, "lr is -0.5"));
  CHECK(contains(rate, "Optimize::groups[1]"));
  ParameterGroup group = selecting("p2", 1.0);
  group.weight_decay = std::nan("");
  CHECK(contains(refusal({group}), "weight_decay is nan"));
}

TEST_CASE("a prefix selects the parameters whose names begin with it") {
  auto const group = frugal::group_by_prefix("head.");
  CHECK(group.selects("head.weight", {}));
  CHECK_FALSE(group.selects("heads", {}));
  CHECK_FALSE(group.selects("a.head.weight", {}));
}

TEST_CASE("a pattern selects the parameters whose whole names match it") {
  auto const group = frugal::group_by_pattern("*.lora_B", {.lr_factor = 16});
  CHECK(group.selects("encoder.0.lora_B", {}));
  CHECK_FALSE(group.selects("encoder.0.lora_B.weight", {}));
  CHECK(group.name == "*.lora_B");
  CHECK(group.lr_factor == 16);
  CHECK(frugal::group_by_pattern("*", {.name = "all"}).name == "all");
  CHECK(frugal::group_by_prefix("head", {.lr = 2}).lr == 2);
  CHECK_THROWS_AS(frugal::group_by_pattern(""), frugal::SettingsError);
}

TEST_CASE("a prefix selects by whole components of a name") {
  auto const layer = frugal::group_by_prefix("1");
  CHECK(layer.selects("1.weight", {}));
  CHECK(layer.selects("1", {}));
  CHECK_FALSE(layer.selects("10.weight", {}));
  CHECK_FALSE(layer.selects("0.1.weight", {}));
  CHECK(frugal::group_by_prefix("head.weight").selects("head.weight", {}));
  CHECK_FALSE(frugal::group_by_prefix("head.weight").selects("head.weight_g", {}));
  CHECK(frugal::group_by_prefix("").selects("head.weight", {}));
}

TEST_CASE("biases and norms have at most one dimension, and no weight decay") {
  auto const group = frugal::no_decay_for_biases_and_norms();
  CHECK(group.selects("bias", at::zeros({3})));
  CHECK(group.selects("scale", at::zeros({})));
  CHECK_FALSE(group.selects("weight", at::zeros({3, 1})));
  CHECK(group.weight_decay_factor == 0.0);
  CHECK_FALSE(group.lr.has_value());
}

using namespace frugal::literals;
using frugal::AdamW;
using frugal::group_by_pattern;
using frugal::GroupSchedule;
using frugal::Schedule;

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

}  // namespace frugal_test::policy_optimize_groups
