// SPDX-License-Identifier: Apache-2.0
// needs: recipes

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <concepts>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/data/tensor_dataset.hpp>
#include <frugal/search/job.hpp>

namespace frugal_test::search_job {

using namespace frugal;
using namespace frugal::detail;
using Names = std::vector<std::string>;

struct Shape {
  int width = 2;
};
torch::nn::Linear of_shape(Shape const& shape) { return torch::nn::Linear(shape.width, 1); }
torch::nn::Linear of_copy(Shape shape) noexcept { return torch::nn::Linear(shape.width, 1); }
torch::nn::Linear of_nothing() { return torch::nn::Linear(7, 1); }

TEST_CASE("make is a function or a callable, of an architecture or of nothing") {
  TensorDataset data(at::zeros({4, 2}), at::zeros({4}), {.batch = 2});
  auto const is_of = [&](auto const& make, auto architecture, std::int64_t width) {
    SearchJob const job{make, 0, data, data};
    using Job = std::remove_const_t<decltype(job)>;
    static_assert(std::same_as<typename Job::architecture, decltype(architecture)>);
    static_assert(std::same_as<typename Job::module_type, torch::nn::Linear>);
    CHECK(job.make_module(architecture)->options.in_features() == width);
  };
  is_of(&of_shape, Shape{5}, 5);
  is_of(&of_copy, Shape{5}, 5);
  is_of(&of_nothing, frugal::detail::NoArchitecture{}, 7);
  is_of([](Shape const& shape) { return of_shape(shape); }, Shape{4}, 4);
  is_of([](Shape shape) noexcept { return of_shape(shape); }, Shape{4}, 4);
  is_of([] { return of_nothing(); }, frugal::detail::NoArchitecture{}, 7);
  // By its name, as programs write it.
  SearchJob const named{of_shape, 0, data, data};
  static_assert(std::same_as<decltype(named)::architecture, Shape>);
}

TEST_CASE("settings with which no search can be made are one clear error each") {
  SearchSettings const usual{.settings = {.run_dir = "here"}};
  CHECK_NOTHROW(usual.require());
  auto const refused = [&](std::function<void(SearchSettings&)> const& change, char const* text) {
    SearchSettings changed = usual;
    change(changed);
    CHECK_THROWS_WITH_AS(changed.require(), doctest::Contains(text), SettingsError);
  };
  double const nan = std::numeric_limits<double>::quiet_NaN();
  refused([](SearchSettings& of) { of.settings.run_dir.clear(); }, "the search has no folder");
  refused([](SearchSettings& of) { of.objectives.clear(); }, "the search has no objective");
  refused([](SearchSettings& of) { of.objectives.resize(2); }, "'loss' is given twice");
  refused([](SearchSettings& of) { of.budget.steps = 0; }, "the budget is not above 0");
  refused([&](SearchSettings& of) { of.budget.hours = nan; }, "the budget is not above 0");
  refused([](SearchSettings& of) { of.budget.dollars = -1; }, "the budget is not above 0");
  refused([](SearchSettings& of) { of.dollars_per_hour = -1; }, "the price is -1");
  refused([&](SearchSettings& of) { of.dollars_per_hour = nan; }, "the price is nan");
  refused([](SearchSettings& of) { of.budget.dollars = 1, of.dollars_per_hour = 0; },
          "the price is 0");
  refused([](SearchSettings& of) { of.most_failures = 0; }, "no trial may fail");
  refused([](SearchSettings& of) { of.most_kills = 0; }, "no process may be killed");
}

struct Given {
  SearchSettings settings{.settings = {.run_dir = "here", .seed = 3}};
  SearchDomain domain{.recipes = {"AdamW", "SGD"},
                      .settings = {{.name = "lr", .values = LogUniform{1e-3, 1}, .recipes = {}},
                                   {.name = "momentum", .values = Uniform{0, 1}, .recipes = {1}}}};
  std::string schedule = "halving", sampler = "tpe";
  std::vector<RunLimits> limits{{.total_steps = 90, .samples_per_epoch = 800}, {}};

  SearchIdentity identity() const {
    return search_identity(settings, domain, schedule, sampler, limits);
  }
};

/// The names of the texts that a change makes different.
std::vector<std::string> changed_by(std::function<void(Given&)> const& change) {
  Given before, after;
  change(after);
  SearchIdentity const one = before.identity(), other = after.identity();
  REQUIRE(one.size() == other.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].first == other[i].first);
    if (one[i].second != other[i].second) names.push_back(one[i].first);
  }
  return names;
}

TEST_CASE("whatever decisions depend on is part of the identity") {
  CHECK(changed_by([](Given& of) { of.domain.recipes[0] = "Lion"; }) == Names{"recipes"});
  CHECK(changed_by([](Given& of) { of.domain.settings[0].values = LogUniform{1e-3, 2}; }) ==
        Names{"settings"});
  CHECK(changed_by([](Given& of) { of.domain.settings[1].recipes = {0}; }) == Names{"settings"});
  CHECK(changed_by([](Given& of) { of.settings.objectives[0].maximise = true; }) ==
        Names{"objectives"});
  // Several objectives have no winner, and no finalists are repeated.
  CHECK(changed_by([](Given& of) { of.settings.objectives.push_back({.name = "bytes"}); }) ==
        Names{"objectives", "finalists"});
  CHECK(changed_by([](Given& of) {
          of.settings.objectives.push_back({.name = "bytes"});
          of.settings.winner_by = "bytes";
        }) == Names{"objectives", "finalists"});
  CHECK(changed_by([](Given& of) { of.schedule = "asha"; }) == Names{"schedule"});
  CHECK(changed_by([](Given& of) { of.sampler = "random"; }) == Names{"sampler"});
  CHECK(changed_by([](Given& of) { of.limits[1].total_steps = 90; }) == Names{"runs"});
  CHECK(changed_by([](Given& of) { of.settings.budget.steps = 900; }) == Names{"budget"});
  CHECK(changed_by([](Given& of) { of.settings.budget.samples = 900; }) == Names{"budget"});
  CHECK(changed_by([](Given& of) { of.settings.settings.seed = 4; }) == Names{"seed"});
  CHECK(changed_by([](Given& of) { of.settings.finalists.seeds = 9; }) == Names{"finalists"});
}

TEST_CASE("a folder, a budget of hours and a price change no decision") {
  CHECK(changed_by([](Given& of) {
          of.settings.settings.run_dir = "there";
          of.settings.budget.hours = 5;
          of.settings.dollars_per_hour = 2;
          of.settings.most_failures = 9;
        }).empty());
}

MeasuredTrial trial() {
  MeasuredTrial made{
      .recipe = "AdamW", .metrics = {}, .train_loss = 0.75, .seconds = 7200, .dollars = {}};
  made.metrics.set("loss", 0.5);
  made.metrics.set("accuracy", 0.875);
  return made;
}
SearchSettings searching(std::string name, bool maximise = false) {
  return {.objectives = {{.name = std::move(name), .maximise = maximise}}};
}

TEST_CASE("an objective is a metric, the training loss, a cost or the size of the module") {
  torch::nn::Linear linear(3, 2);
  auto const value = [&](SearchSettings const& search) {
    return objective_values(search, trial(), *linear).at(0);
  };
  CHECK(value(searching("loss")) == 0.5);
  CHECK(value(searching("accuracy", true)) == -0.875);
  CHECK(value(searching("train_loss")) == 0.75);
  CHECK(value(searching("seconds")) == 7200);
  CHECK(value(searching("bytes")) == (3 * 2 + 2) * 4);
  SearchSettings priced = searching("dollars");
  priced.dollars_per_hour = 1.5;
  CHECK(value(priced) == 3);
  MeasuredTrial metered = trial();
  metered.dollars = 8;
  CHECK(objective_values(priced, metered, *linear).at(0) == 8);
  CHECK_THROWS_WITH_AS(value(searching("dollars")),
                       doctest::Contains("CostMeter has no price in US dollars"), SettingsError);
}

double bytes(torch::nn::Module& module) {
  return objective_values(searching("bytes"), trial(), module).at(0);
}

TEST_CASE("buffers count as bytes, and missing ones do not") {
  torch::nn::BatchNorm1d norm(5);
  // Weight, bias, mean and variance of 5 floats, and a counter of 8 bytes.
  CHECK(bytes(*norm) == 4 * 5 * 4 + 8);
  torch::nn::BatchNorm1d bare(
      torch::nn::BatchNorm1dOptions(5).affine(false).track_running_stats(false));
  CHECK(bytes(*bare) == 0);
}

TEST_CASE("a tied weight counts once") {
  torch::nn::Module net;
  at::Tensor const weight = net.register_parameter("words", at::ones({4, 3}));
  net.register_parameter("head", weight);
  CHECK(bytes(net) == 4 * 3 * 4);
}

TEST_CASE("a function measures the module, also in place of a metric") {
  torch::nn::Linear linear(3, 2);
  SearchSettings search = searching("loss");
  search.objectives.push_back({.name = "outputs", .maximise = true});
  search.measures["outputs"] = [](torch::nn::Module& module) {
    return static_cast<double>(module.parameters().back().numel());
  };
  search.measures["loss"] = [](torch::nn::Module&) { return 9.0; };
  CHECK(objective_values(search, trial(), *linear) == ObjectiveValues{9, -2});
}

TEST_CASE("an objective that nothing measures is an error of the search") {
  torch::nn::Linear linear(3, 2);
  CHECK_THROWS_WITH_AS(objective_values(searching("f1"), trial(), *linear),
                       doctest::Contains("the validation of 'AdamW' has no metric of that name"),
                       ObjectiveError);
}

struct FakeRecipe {
  std::string name{};
  bool (*may_measure)(std::string_view) = [](std::string_view metric) { return metric == "loss"; };
  bool has_cost_meter = false;
};

TEST_CASE("an objective that a recipe cannot measure is refused before the first trial") {
  std::vector<FakeRecipe> const recipes{
      {.name = "a", .may_measure = [](std::string_view) { return true; }},
      {.name = "b", .has_cost_meter = true}};
  CHECK_NOTHROW(require_objectives(searching("loss"), recipes));
  for (char const* const own : {"train_loss", "bytes", "seconds"}) {
    CHECK_NOTHROW(require_objectives(searching(own), recipes));
  }
  CHECK_THROWS_WITH_AS(require_objectives(searching("f1"), recipes),
                       doctest::Contains("the recipe 'b' has no metric of that name"),
                       SettingsError);
  SearchSettings measured = searching("f1");
  measured.measures["f1"] = [](torch::nn::Module&) { return 0.0; };
  CHECK_NOTHROW(require_objectives(measured, recipes));
}

TEST_CASE("dollars need a price, or a meter in each recipe") {
  std::vector<FakeRecipe> recipes{{.name = "a", .has_cost_meter = true}, {.name = "b"}};
  CHECK_THROWS_WITH_AS(require_objectives(searching("dollars"), recipes),
                       doctest::Contains("there is no price"), SettingsError);
  SearchSettings priced = searching("dollars");
  priced.dollars_per_hour = 2;
  CHECK_NOTHROW(require_objectives(priced, recipes));
  recipes[1].has_cost_meter = true;
  CHECK_NOTHROW(require_objectives(searching("dollars"), recipes));
  CHECK_NOTHROW(require_objectives({.budget = {.dollars = 1}}, recipes));
  recipes[1].has_cost_meter = false;
  CHECK_THROWS_WITH_AS(require_objectives({.budget = {.dollars = 1}}, recipes),
                       doctest::Contains("there is no price"), SettingsError);
  // A figure of its own that has this name.
  SearchSettings own = searching("dollars");
  own.measures["dollars"] = [](torch::nn::Module&) { return 1.0; };
  CHECK_NOTHROW(require_objectives(own, recipes));
}

RunLimits of_steps(std::uint64_t steps, std::uint64_t per_epoch = 1000) {
  return {.steps = steps, .total_steps = steps, .samples_per_epoch = per_epoch};
}
RunLimits of_epochs(std::uint64_t epochs, std::uint64_t per_epoch = 1000) {
  return {.epochs = epochs, .total_steps = epochs * 10, .samples_per_epoch = per_epoch};
}

TEST_CASE("a whole run is as long as the recipes say, in the unit of the rungs") {
  CHECK(search_horizon({}, RungUnit::steps, {of_steps(90), of_steps(90)}) == 90);
  CHECK(search_horizon({}, RungUnit::steps, {of_epochs(3)}) == 30);
  CHECK(search_horizon({}, RungUnit::samples, {of_epochs(3)}) == 3000);
  CHECK(search_horizon({.horizon = 60}, RungUnit::seconds, {of_steps(90)}) == 60);
  CHECK(search_horizon({.dollars_per_hour = 2, .horizon = 60}, RungUnit::cents, {of_steps(90)}) ==
        60);
}

TEST_CASE("a length that is unknown, or not the same for all, is one clear error") {
  auto const refused = [](SearchSettings const& settings, RungUnit unit,
                          std::vector<RunLimits> const& all, char const* text) {
    CHECK_THROWS_WITH_AS(search_horizon(settings, unit, all), doctest::Contains(text),
                         SettingsError);
  };
  refused({}, RungUnit::steps, {{}}, "the length of a whole run is not known");
  refused({}, RungUnit::samples, {of_steps(90)}, "Set Settings::epochs and not steps");
  refused({}, RungUnit::steps, {of_steps(90), of_steps(45)},
          "one recipe trains 90 steps and another one 45");
  refused({}, RungUnit::samples, {of_epochs(3), of_epochs(3, 900)},
          "3000 samples and another one 2700");
  refused({}, RungUnit::seconds, {of_steps(90)}, "Set SearchSettings::horizon");
  refused({.horizon = 0}, RungUnit::seconds, {of_steps(90)}, "Set SearchSettings::horizon");
  refused({.horizon = 60}, RungUnit::cents, {of_steps(90)}, "there is no price");
}

TEST_CASE("a planned budget is in the unit of the rungs, and the finalists' repeats come first") {
  CHECK(planned_budget({.steps = 1000}, RungUnit::steps) == 1000);
  CHECK(planned_budget({.samples = 800}, RungUnit::samples) == 800);
  CHECK(!planned_budget({}, RungUnit::steps));
  CHECK(!planned_budget({.hours = 1}, RungUnit::seconds));
  CHECK_THROWS_WITH_AS(planned_budget({.steps = 1000}, RungUnit::seconds),
                       doctest::Contains("the budget is in steps, and the rungs are in seconds"),
                       SettingsError);
  CHECK_THROWS_AS(planned_budget({.samples = 1000}, RungUnit::steps), SettingsError);
  CHECK(without_repeats(1000, 360, RungUnit::steps) == 640);
  CHECK_THROWS_WITH_AS(without_repeats(360, 360, RungUnit::samples),
                       doctest::Contains("repeats alone take 360"), SettingsError);
}

TEST_CASE("a planned budget pays for one trial to its end") {
  CHECK_NOTHROW(require_complete({.complete = 1}, 90, RungUnit::steps));
  CHECK_THROWS_WITH_AS(require_complete({}, 90, RungUnit::samples),
                       doctest::Contains("the budget is 90 samples"), SettingsError);
}

TEST_CASE("a budget in time or money pays for a first rung in time or money") {
  auto const refused = [](SearchSettings const& settings, RungUnit unit, std::uint64_t first) {
    CHECK_NOTHROW(require_first_rung(settings, unit, first));
    CHECK_THROWS_WITH_AS(require_first_rung(settings, unit, first + 1),
                         doctest::Contains("the first rung of one trial takes"), SettingsError);
  };
  refused({.budget = {.hours = 0.5}}, RungUnit::seconds, 1800);
  refused({.budget = {.dollars = 5}, .dollars_per_hour = 2.5}, RungUnit::seconds, 7200);
  refused({.budget = {.dollars = 5}}, RungUnit::cents, 500);
  refused({.budget = {.hours = 2}, .dollars_per_hour = 2.5}, RungUnit::cents, 500);
  CHECK_NOTHROW(require_first_rung({.budget = {.hours = 1e-9}}, RungUnit::steps, 1000));
  CHECK_NOTHROW(require_first_rung({}, RungUnit::seconds, 1000));
}

}  // namespace frugal_test::search_job
