// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <optional>
#include <string>

namespace frugal::html {

/// How a number reads, on an axis and in a table.
enum class Unit : unsigned char { plain, count, percent, bytes, dollars, seconds };

/// A missing number.
inline constexpr char const* no_value = "\xe2\x80\x93";
inline constexpr char const* minus = "\xe2\x88\x92";

/// As many digits as matter, without an exponent where people write none: 0.0123, 12.3, 1.23M.
std::string short_number(double value);

/// $0.0123, $12.34, $37,748. A minus stands before the sign.
std::string money_text(double amount, std::string const& currency = "USD");

/// 3.2 ms, 4.5 s, 12 min 30 s, 1 h 05 min.
std::string time_text(double seconds);

std::string value_text(double value, Unit unit);
inline std::string value_text(std::optional<double> value, Unit unit) {
  return value ? value_text(*value, unit) : no_value;
}
std::string value_text(std::integral auto value, Unit unit) {
  return value_text(static_cast<double>(value), unit);
}

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/quantity.ipp>
#endif
