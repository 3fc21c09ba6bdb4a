// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/schedule/rungs.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::search_rungs {

using frugal::Bracket;
using frugal::hyperband;
using frugal::Rung;
using frugal::successive_halving;

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

}  // namespace frugal_test::search_rungs
