// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/number_text.hpp>

#include "support/locales.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>

namespace frugal_test::store_number_text {

using frugal::detail::fixed;
using frugal::detail::fixed_short;
using frugal::detail::fixed_small;
using frugal::detail::general;
using frugal::detail::without_point;

// As C's standard defines %f and %g.
void check_digits() {
  CHECK(fixed(1234567.25, 1) == "1234567.2");
  CHECK(fixed(-0.125, 2) == "-0.12");
  CHECK(fixed(3, 0) == "3");
  CHECK(fixed(std::numeric_limits<double>::max(), 1).size() == 311);
  CHECK(fixed_small(0.0000024, 5) == "0.0000024");
  CHECK(fixed_small(-0.0000024, 5) == "-0.0000024");
  CHECK(fixed_small(0.0123, 3) == "0.012");
  CHECK(fixed_small(0.5, 2) == "0.50");
  CHECK(fixed_small(37748, 2) == "37748.00");
  CHECK(fixed_small(0, 2) == "0.00");
  CHECK(fixed_small(1e-300, 2) == "0.000000000000");
  CHECK(fixed_short(20, 6) == "20");
  CHECK(fixed_short(1200, 0) == "1200");
  CHECK(fixed_short(-3.25, 6) == "-3.25");
  CHECK(general(0.1, 7) == "0.1");
  CHECK(general(1234567.25, 4) == "1.235e+06");
  CHECK(general(0.00012345, 3) == "0.000123");
  CHECK(general(-1e-300, 3) == "-1e-300");
  CHECK(general(std::numeric_limits<double>::infinity(), 3) == "inf");
}

// What a library reads by the program's locale, in C and in C++, is the number that was written.
void check_without_point() {
  CHECK(without_point(0.9995) == "9995e-4");
  CHECK(without_point(1) == "1e0");
  CHECK(without_point(-20) == "-2e1");
  for (double const number : {0.9995, 1.0, 0.1, 1.0 / 3, 0.0, 123456789.25, -5e-324, 0.99,
                              std::numeric_limits<double>::max()}) {
    CHECK(std::strtod(without_point(number).c_str(), nullptr) == number);
    if (std::abs(number) < 1e-300) continue;  // libstdc++'s streams refuse these in every locale
    std::istringstream in(without_point(number));
    double read = 0;
    CHECK((in >> read && in.eof()));
    CHECK(read == number);
  }
}

TEST_CASE("digits are those of printf in the C locale") { check_digits(); }

TEST_CASE("a number without a point is read as itself in every locale") {
  check_without_point();
  support::GroupedLocale const grouped;
  check_without_point();
  support::CommaLocale const comma;
  REQUIRE(comma.works());
  check_without_point();
}

TEST_CASE("no locale changes a digit") {
  support::GroupedLocale const grouped;
  check_digits();
  support::CommaLocale const comma;
  if (comma.works()) check_digits();
}

TEST_CASE("counts and shares read as people write them") {
  CHECK(frugal::detail::grouped(0) == "0");
  CHECK(frugal::detail::grouped(999) == "999");
  CHECK(frugal::detail::grouped(1000) == "1,000");
  CHECK(frugal::detail::grouped(1234567890) == "1,234,567,890");
  CHECK(frugal::detail::fixed(0.125, 2) == "0.12");
  CHECK(frugal::detail::fixed(1e300, 1).size() == 303);
  CHECK(frugal::detail::percent_of(1, 3) == "33.33%");
  CHECK(frugal::detail::percent_of(0, 0) == "0%");
  CHECK(frugal::detail::exact_text(0.9) == "0.9");
  CHECK(frugal::detail::exact_text(1000000) == "1000000");
  CHECK(frugal::detail::exact_text(0.1 + 0.2) == "0.30000000000000004");
}

}  // namespace frugal_test::store_number_text
