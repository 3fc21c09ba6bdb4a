// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/money.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <cstddef>

namespace frugal::plan {

FRUGAL_INLINE std::string amount_text(double amount) {
  return std::abs(amount) < 1 ? frugal::detail::general(amount, 6)
                              : frugal::detail::fixed(amount, 2);
}

FRUGAL_INLINE std::string dollars_text(double amount) {
  std::string text = amount_text(std::abs(amount));
  std::size_t const point = text.find('.');
  for (std::size_t at = point; at != std::string::npos && at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return (amount < 0 ? "-$" : "$") + text;
}

}  // namespace frugal::plan
