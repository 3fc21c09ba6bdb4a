// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>

namespace frugal::plan {

/// An amount of money, whatever the locale: cents from 1 on, and six digits below, because a short
/// run costs less than a cent.
inline std::string amount_text(double amount) {
  std::array<char, 340> text{};  // the largest double has 309 digits before the point
  char* const end = text.data() + text.size();
  bool const small = std::abs(amount) < 1;
  auto const format = small ? std::chars_format::general : std::chars_format::fixed;
  return {text.data(), std::to_chars(text.data(), end, amount, format, small ? 6 : 2).ptr};
}

/// "$37,748.00", "-$0.25"
inline std::string dollars_text(double amount) {
  std::string text = amount_text(std::abs(amount));
  std::size_t const point = text.find('.');
  for (std::size_t at = point; at != std::string::npos && at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return (amount < 0 ? "-$" : "$") + text;
}

}  // namespace frugal::plan
