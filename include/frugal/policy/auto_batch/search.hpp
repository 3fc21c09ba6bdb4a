// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace frugal::detail {

/// The largest number from 1 to `most` that fits, by doubling and bisection; 0 if not even 1 fits.
/// Calls `fits(n)` at most 2 log2(most) + 2 times, once per number, and assumes that everything
/// above a number that does not fit does not fit either.
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
