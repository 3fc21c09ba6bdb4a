// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/search/objective_values.hpp>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::search_objective_values {

using namespace frugal;
using namespace frugal::detail;

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

}  // namespace frugal_test::search_objective_values
