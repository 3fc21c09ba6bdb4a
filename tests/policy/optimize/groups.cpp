// SPDX-License-Identifier: Apache-2.0
#include "policy/optimize/fixture.hpp"
#include "policy/optimize/named_parts.hpp"

#include <doctest/doctest.h>

#include <frugal/policy/optimize/groups.hpp>
#include <frugal/policy/schedule.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

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

using frugal::AdamW;
using frugal::group_by_pattern;
using frugal::GroupSchedule;
using frugal::Schedule;

TEST_CASE("curves are laid over the run, and a function is taken as it is") {
  frugal::RunLimits const ten{.total_steps = 10};
  GroupSchedule const curves = Schedule<frugal::Warmup<4>, frugal::LinearDecay<>>{};
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
      .groups = {frugal::layer_wise_rate("encoder.layer.{}.", 0.8),
                 group_by_pattern(
                     "head.*", {.schedule = Schedule<frugal::Warmup<5>, frugal::LinearDecay<>>{}}),
                 group_by_pattern("encoder.*", {.beta1 = 0.5}),
                 frugal::no_decay_for_biases_and_norms()}};
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
                                    "a", {.schedule = Schedule<frugal::StepDecay<1, 0.5>>{}})}},
                  EachStep{.call = call}}
      .fit(gradients_of_one(2, 3));
  CHECK(shown == std::vector<double>{8, 4, 2});
}

}  // namespace frugal_test::policy_optimize_groups

// Rules of different settings, combined, against torch.optim with one group for each parameter.
namespace frugal_test::policy_optimize_group_settings {

using namespace frugal_test::policy_optimize;
using frugal::AdamW;
using frugal::group_by_pattern;
using frugal::layer_wise_rate;
using frugal::no_decay_for_biases_and_norms;
using frugal::Optimize;
using frugal::ParameterGroup;
using frugal::SGD;

/// Which group a parameter's rate has in the log.
using NameInLog = std::function<std::string(std::string const& parameter)>;

std::string layer_in_log(std::string const& name) {
  if (name.starts_with("embeddings.")) return "embeddings";
  return name.starts_with("encoder.") ? name.substr(0, name.find('.', 14)) : "head";
}

/// Trains the case and compares weights and logged rates with PyTorch's.
template <class Policy, class... More>
void compare(std::string const& name, Policy const& policy, NameInLog const& in_log,
             More const&... more) {
  CAPTURE(name);
  Json const& which = case_named(named_job().file.at("cases"), name);
  auto const module = named_job().module();
  int looks = 0;
  Rates rates;
  Spy spy{.each_step = [&](frugal::Counters const& at) {
    std::string const step = std::to_string(at.step);
    if (!which.at("float64").contains(step)) return;
    ++looks;
    auto const parameters = module->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor const expected =
          tensor_in(which.at("float64").at(step).at(i), named_job().shapes[i], at::kDouble);
      CAPTURE(named_job().names[i]);
      CHECK(distance(parameters[i], expected) <= 1e-6);
    }
  }};
  frugal::Trainer trainer{module,         Linear{}, frugal::Settings{}, policy, spy,
                          logging(rates), more...};
  CHECK(trainer.fit(named_job().tables()).steps == 20);
  CHECK(looks == 3);
  REQUIRE(rates.size() == 20);
  for (std::size_t step = 0; step < 20; ++step) {
    for (std::size_t i = 0; i < named_job().names.size(); ++i) {
      if (!in_log) {
        CHECK(rates[step].empty());
        continue;
      }
      std::string const group = in_log(named_job().names[i]);
      CAPTURE(group);
      REQUIRE(rates[step].contains(group));
      double const expected = which.at("rates").at(step).at(i);
      CHECK(rates[step].at(group) == doctest::Approx(expected).epsilon(1e-12));
    }
  }
}

NameInLog const head_or_default = [](std::string const& name) {
  return name.starts_with("head.") ? "head.*" : "default";
};

TEST_CASE("AdamW: a rate for the head, and no decay on biases") {
  compare("adamw, rates and decays",
          Optimize<AdamW>{.lr = 1e-2,
                          .weight_decay = 0.1,
                          .groups = {group_by_pattern("head.*", {.lr = 3e-2}),
                                     no_decay_for_biases_and_norms()}},
          head_or_default);
}

TEST_CASE("AdamW: layer-wise rates times no decay, in either order") {
  for (auto const& groups :
       {std::vector<ParameterGroup>{layer_wise_rate("encoder.layer.{}.", 0.8),
                                    no_decay_for_biases_and_norms()},
        std::vector<ParameterGroup>{no_decay_for_biases_and_norms(),
                                    layer_wise_rate("encoder.layer.{}.", 0.8)}}) {
    compare("adamw, layer-wise and no decay",
            Optimize<AdamW>{.lr = 1e-2, .weight_decay = 0.1, .groups = groups}, layer_in_log);
  }
}

TEST_CASE("AdamW: betas of a group; the log has no rates if there is only one") {
  compare("adamw, betas",
          Optimize<AdamW>{.lr = 1e-2,
                          .weight_decay = 0.1,
                          .groups = {group_by_pattern("encoder.*", {.beta1 = 0.8, .beta2 = 0.99})}},
          {});
}

TEST_CASE("AdamW: a schedule of each group's own") {
  compare(
      "adamw, a schedule per group",
      Optimize<AdamW>{
          .lr = 1e-2,
          .weight_decay = 0.1,
          .groups = {group_by_pattern(
                         "head.*",
                         {.lr = 3e-2,
                          .schedule = frugal::Schedule<frugal::Warmup<5>, frugal::Constant<>>{}}),
                     {.name = "body",
                      .selects = [](std::string_view name,
                                    at::Tensor const&) { return !name.starts_with("head."); },
                      .schedule =
                          [](std::uint64_t step) {
                            return (1 +
                                    std::cos(std::numbers::pi * static_cast<double>(step) / 20)) /
                                   2;
                          }}}},
      [](std::string const& name) { return name.starts_with("head.") ? "head.*" : "body"; });
}

TEST_CASE("AdamW: a group's schedule and the recipe's multiply, and so do layer-wise rates") {
  compare(
      "adamw, schedules that multiply",
      Optimize<AdamW>{
          .lr = 1e-2,
          .weight_decay = 0.1,
          .groups = {layer_wise_rate("encoder.layer.{}.", 0.8),
                     group_by_pattern(
                         "head.*",
                         {.name = "slowly",
                          .schedule = frugal::Schedule<frugal::Warmup<5>, frugal::Constant<>>{}}),
                     no_decay_for_biases_and_norms()}},
      [](std::string const& name) {
        std::string const layer = layer_in_log(name);
        return layer == "head" ? "head+slowly" : layer;
      },
      frugal::Schedule<frugal::Cosine>{});
}

TEST_CASE("SGD: momentum of a group") {
  compare("sgd, momentum",
          Optimize<SGD>{.lr = 1e-2,
                        .momentum = 0.9,
                        .weight_decay = 0.1,
                        .groups = {group_by_pattern("head.*", {.momentum = 0.0}),
                                   no_decay_for_biases_and_norms()}},
          {});
}

TEST_CASE("SGD: a factor of the rate (LoRA+) and a schedule") {
  compare(
      "sgd, factor and schedule",
      Optimize<SGD>{.lr = 1e-2,
                    .momentum = 0.9,
                    .weight_decay = 0.1,
                    .groups = {group_by_pattern(
                        "*.lora_B", {.name = "lora_B",
                                     .lr_factor = 16,
                                     .schedule = frugal::Schedule<frugal::StepDecay<4, 0.5>>{}})}},
      [](std::string const& name) { return name.ends_with(".lora_B") ? "lora_B" : "default"; });
}

TEST_CASE("one kernel call for each distinct set of settings") {
  auto const calls = [](std::vector<ParameterGroup> groups) {
    return operators_of([&] {
             frugal::Trainer{named_job().module(), Linear{}, frugal::Settings{.steps = 1},
                             Optimize<AdamW>{.lr = 1e-2, .groups = std::move(groups)}}
                 .fit(named_job().tables());
           })
        .at("aten::_fused_adamw_");
  };
  CHECK(calls({}) == 1);
  CHECK(calls({no_decay_for_biases_and_norms()}) == 2);
  // Embeddings and lora_A and lora_B have no bias; the three layers and the head have.
  CHECK(calls({layer_wise_rate("encoder.layer.{}.", 0.8)}) == 5);
  CHECK(calls({layer_wise_rate("encoder.layer.{}.", 0.8), no_decay_for_biases_and_norms()}) == 9);
  // Rules that come to the same settings.
  CHECK(calls({group_by_pattern("head.*", {.lr = 1e-2})}) == 1);
  CHECK(calls({group_by_pattern("head.*", {.lr = 5e-3}),
               group_by_pattern("encoder.*", {.lr_factor = 0.5})}) == 2);
  CHECK(calls({group_by_pattern("head.*", {.beta1 = 0.8})}) == 2);
}

/// What the step of gradient 1 moved each parameter by, at rate 1 and without momentum.
std::vector<double> moves(std::vector<std::string> const& names,
                          std::vector<ParameterGroup> groups) {
  auto const module = tree_of(names);
  frugal::Trainer{module, Linear{}, frugal::Settings{},
                  Optimize<SGD>{.lr = 1.0, .groups = std::move(groups)}}
      .fit(gradients_of_one(names.size(), 1));
  std::vector<double> moved;
  for (at::Tensor const& each : module->parameters()) moved.push_back(1 - each.item<double>());
  return moved;
}

std::string refusal(std::vector<std::string> const& names, std::vector<ParameterGroup> groups) {
  return error_of<frugal::SettingsError>([&] { moves(names, std::move(groups)); });
}

TEST_CASE("factors of several rules multiply, on a rule's rate and decay as on the optimizer's") {
  std::vector<std::string> const names{"a", "b.a", "b.b"};
  ParameterGroup const all = group_by_pattern("*", {.lr_factor = 0.5});
  CHECK(moves(names, {all}) == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(moves(names, {all, group_by_pattern("b.*", {.lr_factor = 0.25})}) ==
        std::vector<double>{0.5, 0.125, 0.125});
  CHECK(moves(names, {all, group_by_pattern("*b", {.lr = 4})}) == std::vector<double>{0.5, 0.5, 2});
  std::vector<std::string> const layers{"l.0.w", "l.1.w"};
  for (auto const& groups : {std::vector<ParameterGroup>{all, layer_wise_rate("l.{}.", 0.5)},
                             std::vector<ParameterGroup>{layer_wise_rate("l.{}.", 0.5), all}}) {
    CHECK(moves(layers, groups) == std::vector<double>{0.125, 0.25});
  }
  // SGD adds the decay times the weight, which is 1.
  CHECK(moves(names, {group_by_pattern("b*", {.weight_decay = 2}),
                      group_by_pattern("*b", {.weight_decay_factor = 0.25}),
                      group_by_pattern("*", {.weight_decay_factor = 0.5})}) ==
        std::vector<double>{1, 2, 1.25});
}

TEST_CASE("no decay on biases and norms composes with a rule that sets a decay") {
  CHECK(moves({"a", "b"}, {group_by_pattern("*", {.weight_decay = 1}),
                           no_decay_for_biases_and_norms()}) == std::vector<double>{1, 1});
}

TEST_CASE("two rules that give a parameter two values are refused, whatever the setting") {
  std::vector<std::string> const names{"a", "b"};
  ParameterGroup const one = group_by_pattern("*", {.momentum = 0.5});
  CHECK(contains(refusal(names, {one, group_by_pattern("b", {.momentum = 0.25})}),
                 "parameter groups '*' and 'b' both give 'b' its momentum"));
  CHECK(contains(refusal(names, {group_by_pattern("a", {.weight_decay = 1}),
                                 group_by_pattern("*", {.weight_decay = 2})}),
                 "both give 'a' its weight_decay"));
}

TEST_CASE("settings that are out of range, or that the optimizer lacks, are refused") {
  auto const of_all = [](ParameterGroup settings) {
    return refusal({"a"}, {group_by_pattern("*", std::move(settings))});
  };
  CHECK(contains(of_all({.lr_factor = -1}), "lr_factor is -1"));
  CHECK(contains(of_all({.lr_factor = HUGE_VAL}), "lr_factor is inf"));
  CHECK(contains(of_all({.weight_decay_factor = std::nan("")}), "weight_decay_factor is nan"));
  CHECK(contains(of_all({.momentum = -0.5}), "momentum is -0.5"));
  std::string const beta = of_all({.beta1 = 0.5});
  CHECK(contains(beta, "parameter group '*' sets beta1"));
  CHECK(contains(beta, "Optimize::groups[0]"));
  CHECK(contains(of_all({.beta2 = 1.0}), "beta2 is 1"));
  std::string const momentum = error_of<frugal::SettingsError>([&] {
    frugal::Trainer{tree_of({"a"}), Linear{}, frugal::Settings{},
                    Optimize<AdamW>{.groups = {group_by_pattern("*", {.momentum = 0.5})}}}
        .fit(gradients_of_one(1, 1));
  });
  CHECK(contains(momentum, "parameter group '*' sets momentum"));
}

TEST_CASE("a group whose settings do not fit together is refused") {
  CHECK(contains(error_of<frugal::SettingsError>([&] {
                   frugal::Trainer{
                       tree_of({"a"}), Linear{}, frugal::Settings{},
                       Optimize<SGD>{.momentum = 0.9,
                                     .nesterov = true,
                                     .groups = {group_by_pattern("*", {.momentum = 0.0})}}}
                       .fit(gradients_of_one(1, 1));
                 }),
                 "nesterov is set with momentum 0"));
}

TEST_CASE("a name in the log stands for one rate") {
  auto const shown = [](std::vector<ParameterGroup> groups) {
    Rates rates;
    frugal::Trainer{tree_of({"a", "b", "c"}), Linear{}, frugal::Settings{},
                    Optimize<SGD>{.lr = 1.0, .groups = std::move(groups)}, logging(rates)}
        .fit(gradients_of_one(3, 1));
    return rates.at(0);
  };
  CHECK(shown({group_by_pattern("a", {.name = "same", .lr_factor = 2}),
               group_by_pattern("b", {.name = "same", .lr_factor = 3})}) ==
        std::map<std::string, double>{{"same", 2}, {"same_2", 3}, {"default", 1}});
  CHECK(shown({group_by_pattern("*", {.lr_factor = 2})}).empty());
  CHECK(shown({{.selects = [](std::string_view name, at::Tensor const&) { return name == "b"; },
                .lr = 4}}) == std::map<std::string, double>{{"group_0", 4}, {"default", 1}});
  ParameterGroup own;
  own.lr_factors = [](std::vector<std::string> const& names) {
    std::vector<frugal::NamedFactor> factors;
    for (std::string const& name : names) factors.push_back({"own", name == "c" ? 2.0 : 0.5});
    return factors;
  };
  CHECK(shown({own}) == std::map<std::string, double>{{"own", 0.5}, {"own_2", 2}});
}

TEST_CASE("lr_factors gives one finite factor for each parameter") {
  ParameterGroup few{.name = "few"};
  few.lr_factors = [](std::vector<std::string> const&) {
    return std::vector<frugal::NamedFactor>{{"a", 1.0}};
  };
  CHECK(contains(refusal({"a", "b"}, {few}), "'few' gives 1 factors for 2 parameters"));
  few.lr_factors = [](std::vector<std::string> const&) {
    return std::vector<frugal::NamedFactor>{{"a", -1.0}};
  };
  CHECK(contains(refusal({"a"}, {few}), "a factor of lr_factors is -1"));
}

TEST_CASE("a process with some of the layers has the settings of the whole module") {
  frugal::Parameters all;
  frugal::TensorPlaces places;
  for (int i = 0; i < 6; ++i) {
    std::string const layer = std::to_string(i);
    for (std::string const& name : {layer + ".weight", layer + ".bias"}) {
      all.names.push_back(name);
      all.tensors.push_back(at::ones({name.ends_with("bias") ? 1 : 2, 3}).squeeze(0));
      places.order.push_back(name);
    }
  }
  std::vector<ParameterGroup> const groups{
      layer_wise_rate("{}.", 0.5), no_decay_for_biases_and_norms(),
      frugal::group_by_prefix("5", {.beta1 = 0.5}), group_by_pattern("4.*", {.weight_decay = 0.3})};
  frugal::detail::ParameterSettings const usual{
      .lr = 0.1, .weight_decay = 0.2, .beta1 = 0.9, .beta2 = 0.99};
  auto const whole = frugal::detail::resolve_groups(groups, all, usual, {});
  for (std::size_t i = 0; i < all.size(); ++i) {
    places.tensors[all.names[i]] = {.place = i / 4 == 1 ? frugal::PlacedTensor::Place::here
                                                        : frugal::PlacedTensor::Place::elsewhere,
                                    .sizes = all.tensors[i].sizes().vec(),
                                    .type = static_cast<int>(at::kFloat)};
  }
  frugal::Parameters own;  // of layers 2 and 3
  for (std::size_t i = 4; i < 8; ++i) {
    own.names.push_back(all.names[i]);
    own.tensors.push_back(all.tensors[i]);
  }
  auto const found = frugal::detail::resolve_groups(groups, own, usual, places);
  REQUIRE(found.parameters.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(own.names[i]);
    CHECK(found.parameters[i].same_update(whole.parameters[i + 4]));
    CHECK(found.parameters[i].rate == whole.parameters[i + 4].rate);
  }
  REQUIRE(found.rates.size() == whole.rates.size());
  for (std::size_t i = 0; i < found.rates.size(); ++i) {
    CHECK(found.rates[i].name == whole.rates[i].name);
  }
  REQUIRE(found.distinct.size() == whole.distinct.size());
  CHECK(found.distinct.size() == 12);  // of six layers, weights and biases
}

}  // namespace frugal_test::policy_optimize_group_settings

namespace frugal_test::policy_optimize_rate_schedules {

using frugal::ParameterGroup;
using frugal::detail::GroupSettings;
using frugal::detail::RateSchedules;

ParameterGroup constant(double factor) {
  return {.name = "constant", .schedule = [factor](std::uint64_t) { return factor; }};
}

TEST_CASE("a rate has the product of its groups' factors, and 1 without any") {
  GroupSettings const settings{.parameters = {}, .rates = {}, .schedules = {{}, {0}, {0, 2}}};
  RateSchedules const schedules({constant(0.5), {}, constant(0.25)}, settings, {});
  CHECK(schedules);
  CHECK(schedules.factors(0) == std::vector<double>{1, 0.5, 0.125});
}

TEST_CASE("groups without a schedule are none, and only those pass a captured step") {
  RateSchedules const none({{.name = "plain", .lr = 1}}, {}, {});
  CHECK_FALSE(none);
  CHECK_NOTHROW(none.require_none());
  CHECK_THROWS_AS(RateSchedules({constant(1)}, {}, {}).require_none(), frugal::SettingsError);
}

TEST_CASE("a factor of 0 is one, and one below it is refused") {
  GroupSettings const settings{.parameters = {}, .rates = {}, .schedules = {{0}}};
  CHECK(RateSchedules({constant(0)}, settings, {}).factors(3) == std::vector<double>{0});
  CHECK_THROWS_AS(RateSchedules({constant(-0.5)}, settings, {}).factors(3), frugal::SettingsError);
}

}  // namespace frugal_test::policy_optimize_rate_schedules
