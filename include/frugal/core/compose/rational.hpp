// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

namespace frugal {

namespace detail {

// Up to 2^53, numerator and denominator are exact as doubles.
inline constexpr std::int64_t largest_exact = std::int64_t{1} << 53;

}  // namespace detail

/// A real number as a template argument: `ClipNorm<0.5>`, `Ema<0.999>`, `LinearDecay<0.1>`.
///
/// It is the decimal fraction that was written, in lowest terms, so that 0.1 in a type's name is exactly
/// one tenth, 0.5 and 0.50 are one type, and all compilers name it alike. A class, because the two
/// compilers mangle a `double` differently. Up to 15 digits; `Rational{1, 3}` is the quotient of two
/// integers.
struct Rational {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;

  constexpr Rational() = default;
  constexpr Rational(std::int64_t over, std::int64_t under) : numerator(over), denominator(under) {}
  // Implicit on purpose: numbers are written as they are in template arguments.
  template <std::integral T>
  constexpr Rational(T whole)  // NOLINT(google-explicit-constructor)
      : numerator(static_cast<std::int64_t>(whole)) {
    require(numerator >= -detail::largest_exact && numerator <= detail::largest_exact);
  }
  template <std::floating_point T>
  constexpr Rational(T decimal)  // NOLINT(google-explicit-constructor)
      : Rational(of_decimal(static_cast<double>(decimal))) {}

  // The quotient of two exact doubles, correctly rounded: Rational(0.1) gives the double 0.1.
  constexpr double value() const {
    return static_cast<double>(numerator) / static_cast<double>(denominator);
  }
  friend constexpr bool operator==(Rational const&, Rational const&) = default;

  constexpr Rational lowest_terms() const {
    std::int64_t a = numerator < 0 ? -numerator : numerator;
    std::int64_t b = denominator;
    while (b != 0) {
      std::int64_t const rest = a % b;
      a = b;
      b = rest;
    }
    return a == 0 ? Rational() : Rational(numerator / a, denominator / a);
  }

 private:
  /// The fraction with the fewest decimals that is this double.
  static constexpr Rational of_decimal(double decimal) {
    for (std::int64_t tens = 1; tens <= detail::largest_exact; tens *= 10) {
      double const many = decimal * static_cast<double>(tens);
      if (!(many >= -detail::largest_exact && many <= detail::largest_exact)) break;
      Rational const near(static_cast<std::int64_t>(many < 0 ? many - 0.5 : many + 0.5), tens);
      if (near.value() == decimal) return near.lowest_terms();
    }
    require(false);
    return {};
  }
  // In a template argument the text is in the compiler's message.
  static constexpr void require(bool fits) {
    if (fits) return;
    throw "frugal: a number in a template argument has at most 15 digits before and after its point, "
          "such as 0.999 or 3e-4. Write a quotient as Rational{1, 3}.";
  }
};

}  // namespace frugal
