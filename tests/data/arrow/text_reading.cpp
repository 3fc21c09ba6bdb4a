// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/text_reading.hpp>

#include <doctest/doctest.h>

#include <limits>

using frugal::detail::exact_number;

TEST_CASE("integers are exact to the last digit, and fractions are rounded") {
  CHECK(exact_number("9007199254740992", 9007199254740992.0));
  CHECK_FALSE(exact_number("9007199254740993", 9007199254740992.0));
  CHECK_FALSE(exact_number("-9007199254740993", -9007199254740992.0));
  CHECK(exact_number(" +0018446744073709551616 ", 18446744073709551616.0));
  CHECK_FALSE(exact_number("18446744073709551615", 18446744073709551616.0));
  CHECK(exact_number("0.1", 0.1));
  CHECK(exact_number("9007199254740993.0", 9007199254740992.0));
  CHECK(exact_number("1e300", 1e300));
}

TEST_CASE("an infinity is one that the text names") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(exact_number("-inf", -infinity));
  CHECK(exact_number("Infinity", infinity));
  CHECK_FALSE(exact_number("1e400", infinity));
  CHECK_FALSE(exact_number("-1e400", -infinity));
}
