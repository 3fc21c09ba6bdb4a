// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/in_order.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::store_in_order {

using frugal::detail::positions_in_order;
using frugal::detail::put_in_order;

TEST_CASE("positions come in the order of their items") {
  std::vector<std::string> const names{"c", "a", "d", "b"};
  auto const order = positions_in_order(
      names.size(), [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  CHECK(order == std::vector<std::size_t>{1, 3, 0, 2});
  CHECK(positions_in_order(0, [](std::size_t, std::size_t) { return false; }).empty());
}

TEST_CASE("move-only items are sorted, and none is lost") {
  std::vector<std::unique_ptr<int>> items;
  for (int const value : {5, 3, 9, 1, 7, 3}) items.push_back(std::make_unique<int>(value));
  put_in_order(items, [](auto const& a, auto const& b) { return *a > *b; });
  std::vector<int> values;
  for (auto const& item : items) values.push_back(*item);
  CHECK(values == std::vector<int>{9, 7, 5, 3, 3, 1});
}

}  // namespace frugal_test::store_in_order
