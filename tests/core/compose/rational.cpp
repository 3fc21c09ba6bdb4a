// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/rational.hpp>

#include <initializer_list>
#include <limits>
#include <type_traits>

namespace frugal_test::compose_rational {

using frugal::Rational;

template <Rational R>
struct Carries {};

constexpr bool is(Rational value, std::int64_t numerator, std::int64_t denominator) {
  return value.numerator == numerator && value.denominator == denominator;
}

TEST_CASE("a number is the decimal fraction that was written, in lowest terms") {
  CHECK(is(0.1, 1, 10));
  CHECK(is(0.25, 1, 4));
  CHECK(is(12.5, 25, 2));
  CHECK(is(6, 6, 1));
  CHECK(is(.5, 1, 2));
  CHECK(is(3., 3, 1));
  CHECK(is(3e-4, 3, 10000));
  CHECK(is(1.5e3, 1500, 1));
  CHECK(is(0.000'1, 1, 10000));
  CHECK(is(-0.5, -1, 2));
  CHECK(is(0.0, 0, 1));
  CHECK(is(-0.0, 0, 1));
  CHECK(is(7U, 7, 1));
}

TEST_CASE("two spellings of one number are one template argument") {
  CHECK(std::is_same_v<Carries<0.5>, Carries<0.50>>);
  CHECK(std::is_same_v<Carries<0.0003>, Carries<3e-4>>);
  CHECK(std::is_same_v<Carries<2>, Carries<2.0>>);
  CHECK(std::is_same_v<Carries<0.5>, Carries<Rational{1, 2}>>);
  CHECK_FALSE(std::is_same_v<Carries<0.5>, Carries<0.51>>);
}

TEST_CASE("the value is the double that was written") {
  CHECK(Rational(0.1).value() == 0.1);
  CHECK(Rational(3e-4).value() == 3e-4);
  CHECK(Rational(0.999).value() == 0.999);
  CHECK(Rational(123456.789).value() == 123456.789);
  CHECK(Rational(0.123456789012345).value() == 0.123456789012345);
  CHECK(Rational(-0.7).value() == -0.7);
  for (int hundredths = 0; hundredths <= 1000; ++hundredths) {
    double const value = hundredths / 100.0;
    CHECK(Rational(value).value() == value);
    CHECK(Rational(value).denominator <= 100);
  }
}

TEST_CASE("the largest exact numbers still fit, and others are refused") {
  CHECK(is(9007199254740992, 9007199254740992, 1));
  CHECK(is(1e15, 1'000'000'000'000'000, 1));
  CHECK(Rational(1e-15).value() == 1e-15);
  double const infinite = std::numeric_limits<double>::infinity();
  for (double const bad : {1e16, 1e-16, 1.0 / 3, infinite, -infinite, infinite - infinite}) {
    CHECK_THROWS_AS(Rational{bad}, char const*);
  }
  CHECK_THROWS_AS(Rational(9007199254740993), char const*);
}

TEST_CASE("lowest_terms divides by the greatest common divisor") {
  CHECK(Rational(12, 18).lowest_terms() == Rational(2, 3));
  CHECK(Rational(-12, 18).lowest_terms() == Rational(-2, 3));
  CHECK(Rational(7, 7).lowest_terms() == Rational(1, 1));
  CHECK(Rational(0, 1000).lowest_terms() == Rational(0, 1));
}

}  // namespace frugal_test::compose_rational
