// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/plot.hpp>
#include <frugal/report/html/quantity.hpp>

#include <cmath>
#include <limits>
#include <string>

namespace frugal_test::html_quantity {

using namespace frugal::html;

TEST_CASE("a negative amount has the unit of its size, after a minus") {
  CHECK(value_text(-0x1p31, Unit::bytes) == minus + std::string("2.0 GiB"));
  CHECK(value_text(-1.5, Unit::dollars) == minus + std::string("$1.50"));
  CHECK(value_text(-90, Unit::seconds) == minus + std::string("1 min 30 s"));
  CHECK(value_text(0x1p31, Unit::bytes) == "2.0 GiB");
}

TEST_CASE("a whole number has all its digits for the script, another one seven") {
  CHECK(json_number(12'345'678) == "12345678");
  CHECK(json_number(-0x1p52) == "-4503599627370496");
  CHECK(json_number(-0.0) == "0");
  CHECK(json_number(1.0 / 3) == "0.3333333");
  CHECK(json_number(12345678.5) == "1.234568e+07");
  CHECK(json_number(1e300) == "1e+300");
  CHECK(json_number(std::numeric_limits<double>::quiet_NaN()) == "null");
}

TEST_CASE("a short number has four digits and a letter for its size") {
  CHECK(short_number(0.0001234) == "0.000123");
  CHECK(short_number(0.05) == "0.05");
  CHECK(short_number(9999) == "9999");
  CHECK(short_number(123456) == "123.5k");
  CHECK(short_number(-2.5e9) == "-2.5G");
  CHECK(short_number(1e16) == "1e+16");
}

}  // namespace frugal_test::html_quantity
