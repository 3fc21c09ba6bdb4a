// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/trials/ranking.hpp>

#include <cstddef>
#include <limits>
#include <vector>

namespace frugal_test::search_ranking {

using frugal::best_first;
using Order = std::vector<std::size_t>;
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("one objective: by value, equal ones by their place, what is not finite last") {
  CHECK(best_first({}).empty());
  CHECK(best_first({{3}, {1}, {2}}) == Order{1, 2, 0});
  CHECK(best_first({{2}, {1}, {2}, {1}}) == Order{1, 3, 0, 2});
  CHECK(best_first({{nan}, {5}, {infinite}, {4}, {-infinite}}) == Order{3, 1, 0, 2, 4});
}

TEST_CASE("several objectives: by front, then the ends of a front and the less crowded first") {
  // Front 0: places 0, 2, 4, 5; place 4 is close to 2. Front 1: places 1 and 3.
  std::vector<frugal::ObjectiveValues> const points{{0, 10},  {9, 9},     {4, 4},
                                                    {5, 9.5}, {3.9, 4.5}, {10, 0}};
  Order const order = best_first(points);
  CHECK(order == Order{0, 5, 2, 4, 1, 3});
  CHECK(best_first({{1, nan}, {2, 2}}) == Order{1, 0});
}

}  // namespace frugal_test::search_ranking
