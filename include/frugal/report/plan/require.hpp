// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace frugal::plan::detail {

[[noreturn]] void refuse(std::string_view input, double value, std::string_view rule);

/// Inputs of a formula. NaN fails each of these, and so does infinity.
inline constexpr double largest = std::numeric_limits<double>::max();
constexpr void require_positive(std::string_view input, double value) {
  if (!(value > 0 && value <= largest)) refuse(input, value, "above 0");
}
constexpr void require_not_negative(std::string_view input, double value) {
  if (!(value >= 0 && value <= largest)) refuse(input, value, "0 or more");
}
constexpr void require_at_least_one(std::string_view input, double value) {
  if (!(value >= 1 && value <= largest)) refuse(input, value, "1 or more");
}
/// Devices that train together: 1 and a half cannot.
constexpr void require_count(std::string_view input, double value) {
  bool const whole =
      value >= 1 && value <= 1e9 && static_cast<double>(static_cast<long long>(value)) == value;
  if (!whole) refuse(input, value, "a whole number, 1 or more");
}
constexpr void require_share(std::string_view input, double value) {
  if (!(value > 0 && value <= 1)) refuse(input, value, "above 0, and at most 1");
}
constexpr void require_fraction(std::string_view input, double value) {
  if (!(value >= 0 && value <= 1)) refuse(input, value, "from 0 to 1");
}

/// Whatever the locale: Turkish has another small letter for I, and MIG would not be found.
std::string lower(std::string_view text);

/// The letters and digits of a text between everything else, in lower case: "nvidia", "a100",
/// "sxm4", "80gb".
std::vector<std::string> words_of(std::string_view text);

/// Levenshtein distance: how many characters to insert, delete or replace.
std::size_t edits_between(std::string_view a, std::string_view b);

/// For an error about an unknown name: "near it are a, b", or all names if none is near.
std::string near_names(std::string_view wanted, std::vector<std::string> const& known);

}  // namespace frugal::plan::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/require.ipp>
#endif
