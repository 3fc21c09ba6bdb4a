// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/spread.hpp>

#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::optional<Spread> Spread::of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  std::size_t const half = values.size() / 2;
  double const median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return Spread{median, values.front(), values.back(), values.size()};
}

}  // namespace frugal
