// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace frugal {

/// The median of some repeats, the least and the greatest of them.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
  std::size_t count = 0;  ///< repeats that it is of

  /// Nothing for no values. The median of an even number is the mean of the two in the middle.
  static std::optional<Spread> of(std::vector<double> values);

  /// The spread of the values times a factor above 0, such as a price.
  Spread times(double factor) const {
    return {median * factor, least * factor, most * factor, count};
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/spread.ipp>
#endif
