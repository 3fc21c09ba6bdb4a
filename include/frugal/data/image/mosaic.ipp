// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/mosaic.hpp>

#include <frugal/inline.hpp>

#include <array>
#include <cmath>

namespace frugal {

FRUGAL_INLINE std::vector<Patch> Mosaic::patches(std::span<SampleKey const> keys,
                                                 std::int64_t height, std::int64_t width) const {
  detail::check_setting(margin >= 0 && margin <= 0.5, "a margin outside of 0 to 0.5", "Mosaic",
                        "Set margin to 0.5 at most, which is the middle.");
  std::array<std::vector<std::int64_t>, 3> partners;
  for (std::size_t i = 0; i < partners.size(); ++i) {
    partners[i] = detail::partners_of(keys, stream + i);
  }
  std::vector<Patch> all;
  all.reserve(4 * keys.size());
  for (std::size_t b = 0; b < keys.size(); ++b) {
    auto const row = static_cast<std::int64_t>(b);
    Draw draw(keys[b], stream);
    auto const place = [&](std::int64_t length) {
      return std::llround(draw.uniform(margin, 1 - margin) * static_cast<double>(length));
    };
    std::int64_t const above = place(height), before = place(width);
    std::int64_t const below = height - above, behind = width - before;
    all.push_back({row, {below, behind, above, before}, row, 0, 0});
    all.push_back({partners[0][b], {below, 0, above, behind}, row, 0, before});
    all.push_back({partners[1][b], {0, behind, below, before}, row, above, 0});
    all.push_back({partners[2][b], {0, 0, below, behind}, row, above, before});
  }
  return all;
}

}  // namespace frugal
