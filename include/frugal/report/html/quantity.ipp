// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/quantity.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/number_texts.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <cstdint>

namespace frugal::html {

FRUGAL_INLINE std::string short_number(double value) {
  if (!std::isfinite(value)) return no_value;
  double const size = std::abs(value);
  if (size == 0) return "0";
  if (size < 1e-3) return detail::general(value, 3);
  if (size < 9999.5) return detail::general(value, 4);
  // 999,950 would otherwise read as 1e+03k.
  if (size < 999.95e3) return detail::general(value / 1e3, 4) + "k";
  if (size < 999.95e6) return detail::general(value / 1e6, 4) + "M";
  if (size < 999.95e9) return detail::general(value / 1e9, 4) + "G";
  if (size < 999.95e12) return detail::general(value / 1e12, 4) + "T";
  return detail::general(value, 3);
}

FRUGAL_INLINE std::string money_text(double amount, std::string const& currency) {
  if (!std::isfinite(amount)) return no_value;
  double const size = std::abs(amount);
  std::string digits;
  if (size >= 1e15) {
    digits = short_number(size);
  } else if (size >= 999.995) {
    digits = detail::grouped(static_cast<std::uint64_t>(std::llround(size)));
  } else {
    digits = detail::fixed_small(size, size >= 1 || size == 0 ? 2 : size >= 0.01 ? 3 : 5);
  }
  std::string const sign = amount < 0 ? minus : "";
  return sign + (currency == "USD" ? "$" + digits : digits + " " + currency);
}

FRUGAL_INLINE std::string time_text(double seconds) {
  if (!std::isfinite(seconds)) return no_value;
  if (seconds < 0) return minus + time_text(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995) return short_number(1e3 * seconds) + " ms";
  if (seconds < 59.95) return short_number(std::round(10 * seconds) / 10) + " s";
  if (seconds > 1e12) return short_number(seconds) + " s";
  auto const whole = static_cast<std::uint64_t>(std::llround(seconds));
  auto const two = [](std::uint64_t a, char const* unit_a, std::uint64_t b, char const* unit_b) {
    std::string text = std::to_string(a) + unit_a;
    if (b != 0) text += (b < 10 ? " 0" : " ") + std::to_string(b) + unit_b;
    return text;
  };
  if (whole < 3600) return two(whole / 60, " min", whole % 60, " s");
  if (whole < 86400) return two(whole / 3600, " h", whole % 3600 / 60, " min");
  return two(whole / 86400, " d", whole % 86400 / 3600, " h");
}

FRUGAL_INLINE std::string value_text(double value, Unit unit) {
  if (!std::isfinite(value)) return no_value;
  switch (unit) {
    case Unit::percent:
      return short_number(std::round(1000 * value) / 10) + "%";
    case Unit::bytes:
      return (value < 0 ? minus : "") + detail::bytes_text(std::abs(value));
    case Unit::dollars:
      return money_text(value);
    case Unit::seconds:
      return time_text(value);
    case Unit::count:
      return std::abs(value) < 1e15 && value >= 0
                 ? detail::grouped(static_cast<std::uint64_t>(std::llround(value)))
                 : short_number(value);
    case Unit::plain:
      break;
  }
  return short_number(value);
}

}  // namespace frugal::html
