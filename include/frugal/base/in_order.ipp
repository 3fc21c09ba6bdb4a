// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/in_order.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::size_t> positions_in_order(
    std::size_t count, std::function<bool(std::size_t, std::size_t)> const& before) {
  std::vector<std::size_t> positions(count);
  for (std::size_t i = 0; i < count; ++i) positions[i] = i;
  std::sort(positions.begin(), positions.end(),
            [&](std::size_t a, std::size_t b) { return before(a, b); });
  return positions;
}

}  // namespace frugal::detail
