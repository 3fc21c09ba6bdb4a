// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/order.hpp>

#include <frugal/inline.hpp>

#include <numeric>
#include <random>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::vector<std::size_t>> round_orders(std::size_t count,
                                                                 std::size_t repeats,
                                                                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::vector<std::size_t>> all;
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    if (repeat % 2 == 1) {
      std::reverse(order.begin(), order.end());
    } else {
      // std::shuffle may differ between libraries; this does not.
      for (std::size_t left = count; left > 1; --left) {
        std::swap(order[left - 1], order[random() % left]);
      }
    }
    all.push_back(order);
  }
  return all;
}

}  // namespace frugal::detail
