// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/rational.hpp>

#include <type_traits>

namespace frugal_test::compose_rational {

using frugal::Rational;
using namespace frugal::literals;

template <Rational R>
struct Carries {};

constexpr bool is(Rational value, std::int64_t numerator, std::int64_t denominator) {
  return value.numerator == numerator && value.denominator == denominator;
}

TEST_CASE("a literal is read as a decimal fraction in lowest terms") {
  CHECK(is(0.1_r, 1, 10));
  CHECK(is(0.25_r, 1, 4));
  CHECK(is(12.5_r, 25, 2));
  CHECK(is(6_r, 6, 1));
  CHECK(is(.5_r, 1, 2));
  CHECK(is(3._r, 3, 1));
}

TEST_CASE("an exponent of either sign and either letter moves the point") {
  CHECK(is(3e-4_r, 3, 10000));
  CHECK(is(2.5E-1_r, 1, 4));
  CHECK(is(1.5e3_r, 1500, 1));
  CHECK(is(1e+2_r, 100, 1));
  CHECK(is(1e0_r, 1, 1));
}

TEST_CASE("zero is 0/1 however it is written") {
  CHECK(is(0_r, 0, 1));
  CHECK(is(0.000_r, 0, 1));
  CHECK(is(0e-5_r, 0, 1));
}

TEST_CASE("digit separators do not count, in the exponent either") {
  CHECK(is(10'000_r, 10000, 1));
  CHECK(is(0.000'1_r, 1, 10000));
  CHECK(is(1e-1'0_r, 1, 10'000'000'000));
}

TEST_CASE("two spellings of one number are one template argument") {
  CHECK(std::is_same_v<Carries<0.5_r>, Carries<0.50_r>>);
  CHECK(std::is_same_v<Carries<0.0003_r>, Carries<3e-4_r>>);
  CHECK_FALSE(std::is_same_v<Carries<0.5_r>, Carries<0.51_r>>);
}

TEST_CASE("the value is the double nearest to the decimal that was written") {
  CHECK((0.1_r).value() == 0.1);
  CHECK((3e-4_r).value() == 3e-4);
  CHECK((0.999_r).value() == 0.999);
  CHECK((123456.789_r).value() == 123456.789);
  CHECK((0.123456789012345_r).value() == 0.123456789012345);
}

TEST_CASE("the largest exact numbers still fit") {
  CHECK(is(9007199254740992_r, 9007199254740992, 1));
  CHECK(is(1e15_r, 1'000'000'000'000'000, 1));
  CHECK((1e-15_r).value() == 1e-15);
}

TEST_CASE("lowest_terms divides by the greatest common divisor") {
  CHECK(is(frugal::detail::lowest_terms(12, 18), 2, 3));
  CHECK(is(frugal::detail::lowest_terms(7, 7), 1, 1));
  CHECK(is(frugal::detail::lowest_terms(0, 1000), 0, 1));
}

}  // namespace frugal_test::compose_rational
