// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/compare/order.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

namespace frugal_test::compare_order {

using frugal::detail::round_orders;
using Order = std::vector<std::size_t>;

TEST_CASE("every round has every recipe once, and a seed gives one order") {
  auto const orders = round_orders(8, 5, 3);
  REQUIRE(orders.size() == 5);
  for (Order order : orders) {
    std::sort(order.begin(), order.end());
    CHECK(order == Order{0, 1, 2, 3, 4, 5, 6, 7});
  }
  CHECK(orders == round_orders(8, 5, 3));
  CHECK(orders != round_orders(8, 5, 4));
}

TEST_CASE("in two rounds the places of each recipe have one sum: a steady drift cancels") {
  for (std::size_t const count : {2U, 3U, 8U}) {
    auto const orders = round_orders(count, 6, 1);
    for (std::size_t pair = 0; pair < orders.size(); pair += 2) {
      std::set<std::ptrdiff_t> sums;
      for (std::size_t recipe = 0; recipe < count; ++recipe) {
        std::ptrdiff_t sum = 0;
        for (Order const& order : {orders[pair], orders[pair + 1]}) {
          sum += std::find(order.begin(), order.end(), recipe) - order.begin();
        }
        sums.insert(sum);
      }
      CHECK(sums == std::set<std::ptrdiff_t>{static_cast<std::ptrdiff_t>(count) - 1});
    }
  }
}

TEST_CASE("a recipe does not always follow the same other one") {
  auto const orders = round_orders(4, 20, 1);
  std::set<std::size_t> before_first;
  for (Order const& order : orders) {
    auto const at = std::find(order.begin(), order.end(), 0U);
    if (at != order.begin()) before_first.insert(*(at - 1));
  }
  CHECK(before_first == std::set<std::size_t>{1, 2, 3});
}

TEST_CASE("no rounds and one recipe have their orders") {
  CHECK(round_orders(3, 0, 1).empty());
  CHECK(round_orders(1, 2, 1) == std::vector<Order>{{0}, {0}});
}

}  // namespace frugal_test::compare_order
