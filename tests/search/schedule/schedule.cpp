// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/schedule/schedule.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
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

/// Decides as it was written down.
struct Written final : SearchSchedule {
  explicit Written(std::vector<SearchDecision> of) : decisions(std::move(of)) {}
  std::vector<std::vector<std::uint64_t>> rungs() const override { return {{1, 2}}; }
  std::string text() const override { return "written"; }
  SearchDecision next(SearchHistory const&) const override {
    return at < decisions.size() ? decisions[at++] : SearchDecision{.kind = Kind::done};
  }
  std::vector<SearchDecision> decisions;
  mutable std::size_t at = 0;
};

TEST_CASE("each decision is carried out before the next one is asked for") {
  Written const schedule({{.kind = Kind::create, .bracket = 4},
                          {.kind = Kind::create},
                          {.kind = Kind::promote, .trial = 1},
                          {.kind = Kind::prune, .trial = 0}});
  SearchHistory history;
  std::vector<std::pair<std::size_t, std::size_t>> trained;
  play_schedule(
      schedule, history, [](SearchDecision const&) { return true; },
      [&](std::size_t number) {
        trained.emplace_back(number, history.trials[number].opened);
        history.trials[number].rungs.push_back({});
      });
  CHECK(trained == std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {1, 1}, {1, 2}});
  CHECK(history.trials[0].bracket == 4);
  CHECK(history.trials[0].state == TrialState::pruned);
  CHECK(history.trials[1].state == TrialState::running);
}

TEST_CASE("it ends before a trial that is not paid for, and where a schedule waits") {
  auto const count = [](std::vector<SearchDecision> decisions, std::size_t paid) {
    Written const schedule(std::move(decisions));
    SearchHistory history;
    std::size_t rungs = 0;
    play_schedule(
        schedule, history, [&](SearchDecision const&) { return rungs < paid; },
        [&](std::size_t) { ++rungs; });
    return rungs;
  };
  std::vector<SearchDecision> const four{{.kind = Kind::create},
                                         {.kind = Kind::promote, .trial = 0},
                                         {.kind = Kind::wait},
                                         {.kind = Kind::create}};
  CHECK(count(four, 0) == 0);
  CHECK(count(four, 1) == 1);
  CHECK(count(four, 9) == 2);
}

template <class Call>
std::string refusal(Call const& call) {
  try {
    call();
  } catch (frugal::SettingsError const& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("the brackets of Hyperband's paper, table 1") {
  std::vector<Bracket> const brackets = hyperband(1, 81, 3);
  REQUIRE(brackets.size() == 5);
  CHECK(brackets[0].rungs == std::vector<Rung>{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}});
  CHECK(brackets[1].rungs == std::vector<Rung>{{34, 3}, {11, 9}, {3, 27}, {1, 81}});
  CHECK(brackets[2].rungs == std::vector<Rung>{{15, 9}, {5, 27}, {1, 81}});
  CHECK(brackets[3].rungs == std::vector<Rung>{{8, 27}, {2, 81}});
  CHECK(brackets[4].rungs == std::vector<Rung>{{5, 81}});
}

TEST_CASE("successive halving ends at the most, whatever the least divides") {
  CHECK(successive_halving(9, 1, 9, 3).rungs == std::vector<Rung>{{9, 1}, {3, 3}, {1, 9}});
  // As ASHA's bracket 1, which begins with the second rung.
  CHECK(successive_halving(9, 3, 9, 3).rungs == std::vector<Rung>{{9, 3}, {3, 9}});
  CHECK(successive_halving(64, 100, 3000, 4).rungs ==
        std::vector<Rung>{{64, 187}, {16, 750}, {4, 3000}});
  CHECK(successive_halving(2, 1, 1000, 3).rungs == std::vector<Rung>{{2, 1}, {1, 1000}});
  CHECK(successive_halving(1, 1, 1000, 3).rungs == std::vector<Rung>{{1, 1000}});
  CHECK(successive_halving(5, 10, 10, 2).rungs == std::vector<Rung>{{5, 10}});
}

TEST_CASE("a trial that goes on pays for what is new alone") {
  // 81 x 1, 27 x 2 more, 9 x 6, 3 x 18, 1 x 54
  CHECK(hyperband(1, 81, 3)[0].cost() == 81 + 54 + 54 + 54 + 54);
  CHECK(successive_halving(2, 1, 1000, 3).cost() == 2 + 999);
  CHECK(Bracket{}.cost() == 0);
}

TEST_CASE("budgets that make no rungs are refused") {
  CHECK(refusal([] { hyperband(1, 81, 1); }).find("eta is 1") != std::string::npos);
  CHECK(refusal([] { hyperband(0, 81, 3); }).find("the least budget is 0") != std::string::npos);
  CHECK(refusal([] {
          successive_halving(3, 82, 81, 3);
        }).find("the least budget is 82, and the most 81") != std::string::npos);
  CHECK(refusal([] { successive_halving(0, 1, 81, 3); }).find("a bracket of no trials") !=
        std::string::npos);
}

}  // namespace frugal_test::search_schedule
