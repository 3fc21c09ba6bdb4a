// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/search/identity.hpp>

#include <functional>
#include <string>
#include <vector>

namespace frugal_test::search_identity_tests {

using namespace frugal;
using namespace frugal::detail;

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

}  // namespace frugal_test::search_identity_tests
