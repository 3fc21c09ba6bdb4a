// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/schedule/schedule.hpp>

#include <limits>
#include <string>
#include <vector>

namespace frugal_test::search_schedule {

using namespace frugal;
using namespace frugal::detail;
using Kind = SearchDecision::Kind;

constexpr double infinite = std::numeric_limits<double>::infinity();

TEST_CASE("units have names, and those of a clock are not the same on every machine") {
  CHECK(std::string(name_of(RungUnit::steps)) == "steps");
  CHECK(std::string(name_of(RungUnit::cents)) == "cents");
  CHECK(is_deterministic(RungUnit::steps));
  CHECK(is_deterministic(RungUnit::samples));
  CHECK(!is_deterministic(RungUnit::seconds));
  CHECK(!is_deterministic(RungUnit::cents));
}

TEST_CASE("the first rung is as given, or eta cubed before the end, and never 0") {
  CHECK(first_rung(5, 81, 3) == 5);
  CHECK(first_rung(0, 81, 3) == 3);
  CHECK(first_rung(0, 10, 3) == 1);
}

TEST_CASE("a budget pays for what is open before it pays for more") {
  std::vector<std::vector<std::uint64_t>> const rungs{{3, 9, 27}, {9, 27}};
  SearchHistory history{.trials = {{.bracket = 0, .opened = 2}, {.bracket = 1, .opened = 1}}};
  auto const pays = [&](std::uint64_t budget, SearchDecision const& decision) {
    return pays_for(budget, rungs, history, decision);
  };
  // 9 and 9 steps are open.
  CHECK(pays(18 + 3, {.kind = Kind::create, .bracket = 0}));
  CHECK(!pays(18 + 2, {.kind = Kind::create, .bracket = 0}));
  CHECK(pays(18 + 9, {.kind = Kind::create, .bracket = 1}));
  CHECK(!pays(18 + 8, {.kind = Kind::create, .bracket = 1}));
  CHECK(pays(18 + 18, {.kind = Kind::promote, .trial = 0}));
  CHECK(!pays(18 + 17, {.kind = Kind::promote, .trial = 0}));
  CHECK(pays_for({}, rungs, history, {.kind = Kind::promote, .trial = 0}));
  // Repeats have a budget of their own.
  history.trials.push_back({.bracket = 0, .repeats = 0, .opened = 3});
  CHECK(pays(18 + 3, {.kind = Kind::create, .bracket = 0}));
}

TEST_CASE(
    "a trial that has ended counts at later rungs as it is, and one that failed is infinitely "
    "bad") {
  SearchTrial trial{.rungs = {{.values = {3}}, {.values = {2}}}};
  CHECK(values_at(trial, 0, 1) == ObjectiveValues{3});
  CHECK(values_at(trial, 5, 1) == ObjectiveValues{2});
  CHECK(has_ended_rung(trial, 1));
  CHECK(!has_ended_rung(trial, 2));
  trial.state = TrialState::failed;
  CHECK(values_at(trial, 1, 1) == ObjectiveValues{2});
  CHECK(values_at(trial, 2, 1) == ObjectiveValues{infinite});
  CHECK(has_ended_rung(trial, 2));
  CHECK(values_at({}, 0, 2) == ObjectiveValues{infinite, infinite});
}

TEST_CASE("repeats are none of a schedule's trials") {
  SearchHistory history{.trials = {{.state = TrialState::pruned}, {.repeats = 0}}};
  CHECK(OwnTrials::of(history).count == 1);
  CHECK(!OwnTrials::of(history).open);
  history.trials.push_back({});
  CHECK(OwnTrials::of(history).count == 2);
  CHECK(OwnTrials::of(history).open);
}

TEST_CASE("settings without a trial, and budgets below the smallest search, are errors") {
  CHECK_NOTHROW(require_trials(1, "Asha::trials"));
  CHECK_THROWS_WITH_AS(require_trials(0, "Asha::trials"), doctest::Contains("Asha::trials is 0"),
                       SettingsError);
  CHECK_NOTHROW(require_budget({}, 10, RungUnit::steps, "Asha"));
  CHECK_NOTHROW(require_budget({.budget = 10}, 10, RungUnit::steps, "Asha"));
  CHECK_THROWS_WITH_AS(require_budget({.budget = 9}, 10, RungUnit::samples, "Asha"),
                       doctest::Contains("takes 10 samples"), SettingsError);
  CHECK_THROWS_WITH_AS(
      require_budget({.budget = 9, .reserved = 54}, 10, RungUnit::steps, "Asha"),
      doctest::Contains("the budget is 63 steps, of which the finalists' repeats take 54"),
      SettingsError);
  CHECK_THROWS_WITH_AS(refuse_unlimited("Asha", "trials", RungUnit::samples),
                       doctest::Contains("Set Asha::trials, or SearchBudget::samples."),
                       SettingsError);
  CHECK_THROWS_WITH_AS(refuse_unlimited("Asha", "trials", RungUnit::cents),
                       doctest::Contains("Set Asha::trials."), SettingsError);
}

}  // namespace frugal_test::search_schedule
