// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace frugal::detail {

/// The largest number from 1 to `most` that fits, found by doubling and bisecting; 0 where not even
/// 1 does. `fits(n)` is asked at most 2 log2(most) + 2 times, each number once, and what is above
/// a number that does not fit is taken not to fit either.
template <class Fits>
std::int64_t largest_that_fits(std::int64_t most, Fits&& fits) {
  std::int64_t good = 0;
  std::int64_t bad = most + 1;
  for (std::int64_t next = 1; good < most && bad > most; next = std::min(2 * next, most)) {
    (fits(next) ? good : bad) = next;
  }
  while (bad - good > 1) {
    std::int64_t const middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace frugal::detail
