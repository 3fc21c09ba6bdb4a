// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace frugal {

/// A real number as a template argument: `ClipNorm<1.0_r>`, `Warmup<200, 0.1_r>`.
///
/// A fraction of two integers, because clang supports floating-point template parameters only since
/// version 18, and because 0.1 in a type's name should be exactly one tenth. Kept in lowest terms,
/// so that 0.50_r and 0.5_r are one type.
struct Rational {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;

  // The quotient of two exact doubles, correctly rounded: 0.1_r gives the double 0.1.
  constexpr double value() const {
    return static_cast<double>(numerator) / static_cast<double>(denominator);
  }
  friend constexpr bool operator==(Rational const&, Rational const&) = default;
};

namespace detail {

constexpr Rational lowest_terms(std::int64_t numerator, std::int64_t denominator) {
  std::int64_t a = numerator;
  std::int64_t b = denominator;
  while (b != 0) {
    std::int64_t const rest = a % b;
    a = b;
    b = rest;
  }
  return a == 0 ? Rational{0, 1} : Rational{numerator / a, denominator / a};
}

// Up to 2^53, numerator and denominator are exact as doubles.
inline constexpr std::int64_t largest_exact = std::int64_t{1} << 53;

template <char... Text>
consteval Rational parse_rational() {
  char const text[] = {Text...};
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  int exponent = 0;
  bool fraction = false;
  for (unsigned i = 0; i < sizeof...(Text); ++i) {
    char const c = text[i];
    if (c == '\'') continue;
    if (c == '.') {
      fraction = true;
      continue;
    }
    if (c == 'e' || c == 'E') {
      bool const negative = text[i + 1] == '-';
      for (unsigned j = i + (negative || text[i + 1] == '+' ? 2 : 1); j < sizeof...(Text); ++j) {
        if (text[j] != '\'') exponent = exponent * 10 + (text[j] - '0');
      }
      if (negative) exponent = -exponent;
      break;
    }
    if (c < '0' || c > '9') throw "frugal: a rational literal is decimal, such as 0.1_r or 3e-4_r";
    numerator = numerator * 10 + (c - '0');
    if (fraction) denominator *= 10;
    if (numerator > largest_exact || denominator > largest_exact) {
      throw "frugal: this rational literal has more digits than a double can hold";
    }
  }
  for (; exponent > 0; --exponent) {
    numerator *= 10;
    if (numerator > largest_exact) throw "frugal: this rational literal is too large";
  }
  for (; exponent < 0; ++exponent) {
    denominator *= 10;
    if (denominator > largest_exact) throw "frugal: this rational literal is too small";
  }
  return lowest_terms(numerator, denominator);
}

}  // namespace detail

inline namespace literals {

/// `1.0_r`, `0.1_r`, `3e-4_r`: up to 15 digits; anything else does not compile.
template <char... Text>
consteval Rational operator""_r() {
  return detail::parse_rational<Text...>();
}

}  // namespace literals
}  // namespace frugal
