// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/schedule/asha.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::size_t> promotable(std::vector<ObjectiveValues> const& results,
                                                  std::size_t eta) {
  std::vector<std::size_t> order = best_first(results);
  order.resize(results.size() / eta);
  std::erase_if(order, [&](std::size_t place) { return !is_finite(results[place]); });
  return order;
}

FRUGAL_INLINE AshaSchedule::AshaSchedule(std::uint64_t trials, std::vector<std::uint64_t> budgets,
                                         std::size_t eta, RungUnit unit, SearchLimits const& limits)
    : trials_(trials),
      budgets_(std::move(budgets)),
      eta_(eta),
      unit_(unit),
      objectives_(limits.objectives) {}

}  // namespace frugal::detail
