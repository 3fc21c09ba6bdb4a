// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/budget/limit.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE std::string amount_text(double amount, std::string_view unit) {
  // Four significant digits below 1000.
  int const digits = amount > 0 && amount < 1000
                         ? std::clamp(3 - static_cast<int>(std::floor(std::log10(amount))), 0, 300)
                         : 0;
  return fixed_short(amount, digits) + " " + std::string(unit);
}

}  // namespace frugal::detail
