// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/schedule/play.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::search_play {

using namespace frugal;
using Kind = SearchDecision::Kind;

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
  detail::play_schedule(
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
    detail::play_schedule(
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

}  // namespace frugal_test::search_play
