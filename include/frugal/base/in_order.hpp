// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace frugal::detail {

/// The positions of `count` items in sorted order; `before(a, b)` compares the items at two
/// positions.
std::vector<std::size_t> positions_in_order(
    std::size_t count, std::function<bool(std::size_t, std::size_t)> const& before);

/// Sorts a list of any type. std::sort is instantiated for each type and comparison, some ten
/// kilobytes of code each time. This sorts positions, compiled once, and moves the items.
template <class T, class Before>
void put_in_order(std::vector<T>& items, Before before) {
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (std::size_t const at : positions_in_order(items.size(), [&](std::size_t a, std::size_t b) {
         return before(items[a], items[b]);
       })) {
    sorted.push_back(std::move(items[at]));
  }
  items = std::move(sorted);
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/in_order.ipp>
#endif
