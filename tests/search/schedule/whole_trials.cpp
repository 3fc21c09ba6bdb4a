// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/schedule/whole_trials.hpp>

#include "support/search_schedules.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::search_whole_trials {

using namespace support::search_schedules;
using namespace frugal;

TEST_CASE("a random search trains all its trials in full, as many as the budget pays for") {
  auto const one = RandomSearch{.trials = 5}.bind({.horizon = 100});
  Played const played = play(*one, [](std::size_t trial, std::size_t) { return double(trial); });
  CHECK(played.created == 5);
  CHECK(played.cost == 500);
  auto const paid = RandomSearch{}.bind({.horizon = 100, .budget = 799});
  CHECK(play(*paid, [](std::size_t, std::size_t) { return 1.0; }).created == 7);
  CHECK(refusal([] {
          RandomSearch{}.bind({.horizon = 100, .budget = 99});
        }).find("takes 100 steps") != std::string::npos);
}

TEST_CASE("a sampler that learns sees whole generations, and no result of its own") {
  auto const schedule =
      RandomSearch{.trials = 7, .generation = 3}.bind({.horizon = 1, .learns = true});
  SearchHistory history;
  using Kind = SearchDecision::Kind;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(schedule->next(history) == SearchDecision{.kind = Kind::create, .visible = 0});
    history.trials.push_back({});
  }
  CHECK(schedule->next(history).kind == Kind::wait);
  history.trials[0].state = history.trials[1].state = TrialState::complete;
  CHECK(schedule->next(history).kind == Kind::wait);
  history.trials[2].state = TrialState::failed;
  CHECK(schedule->next(history) == SearchDecision{.kind = Kind::create, .visible = 3});
  // The generation of a sampler is stronger.
  auto const own = RandomSearch{.trials = 7, .generation = 3}.bind(
      {.horizon = 1, .learns = true, .generation = 5});
  CHECK(own->next(history).visible == 0);
  CHECK(refusal([] {
          RandomSearch{.trials = 2, .generation = 0}.bind({.learns = true});
        }).find("generation is 0") != std::string::npos);
}

TEST_CASE("a grid has every combination once, of each recipe the settings that it has") {
  SearchDomain const domain{
      .recipes = {"a", "b"},
      .settings = {{.name = "lr", .values = LogUniform{1e-3, 1e-1}, .recipes = {}},
                   {.name = "width", .values = Int{2, 4}, .recipes = {1}},
                   {.name = "kind", .values = Choice{{"x", "y"}}, .recipes = {0}}}};
  auto const schedule = GridSearch{.points = 3}.bind({.horizon = 10, .domain = &domain});
  Played const played = play(*schedule, [](std::size_t, std::size_t) { return 1.0; });
  CHECK(played.created == 3 * 2 + 3 * 3);
  std::set<std::vector<double>> seen;
  for (std::size_t i = 0; i < played.created; ++i) {
    auto const candidate = schedule->candidate(i);
    REQUIRE(candidate);
    CHECK(is_candidate_of(domain, *candidate));
    std::vector<double> key{static_cast<double>(candidate->recipe)};
    for (auto const& value : candidate->values) key.push_back(value.value_or(-1));
    CHECK(seen.insert(key).second);
  }
  CHECK(detail::grid_values(LogUniform{1e-3, 1e-1}, 3)[0] == doctest::Approx(1e-3));
  CHECK(detail::grid_values(LogUniform{1e-3, 1e-1}, 3)[1] == doctest::Approx(1e-2));
  CHECK(detail::grid_values(LogUniform{1e-3, 1e-1}, 3)[2] == 1e-1);
  CHECK(detail::grid_values(Uniform{0, 1}, 1) == std::vector<double>{0.5});
  CHECK(detail::grid_values(Int{0, 1000}, 3) == std::vector<double>{0, 500, 1000});
}

TEST_CASE("a grid that is too large is refused") {
  SearchDomain domain{.recipes = {"a"}, .settings = {}};
  for (int i = 0; i < 9; ++i) {
    domain.settings.push_back({.name = std::to_string(i), .values = Uniform{}, .recipes = {}});
  }
  CHECK(refusal([&] {
          GridSearch{}.bind({.horizon = 10, .domain = &domain});
        }).find("more than a million") != std::string::npos);
}

}  // namespace frugal_test::search_whole_trials
