// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <frugal/search/job.hpp>

#include <doctest/doctest.h>

#include <frugal/data/tensor_dataset.hpp>

#include <torch/nn/modules/linear.h>

#include <concepts>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace frugal_test::search_job {

using namespace frugal;
using namespace frugal::detail;

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
using Names = std::vector<std::string>;

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

}  // namespace frugal_test::search_job
