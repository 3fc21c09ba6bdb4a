// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/quantity.hpp>

#include <cmath>
#include <optional>
#include <string>

namespace frugal_test::html_quantity {

using namespace frugal::html;

TEST_CASE("a negative amount has the unit of its size, after a minus") {
  CHECK(value_text(-0x1p31, Unit::bytes) == minus + std::string("2.0 GiB"));
  CHECK(value_text(-1.5, Unit::dollars) == minus + std::string("$1.50"));
  CHECK(value_text(-90, Unit::seconds) == minus + std::string("1 min 30 s"));
  CHECK(value_text(0x1p31, Unit::bytes) == "2.0 GiB");
}

TEST_CASE("a short number has four digits and a letter for its size") {
  CHECK(short_number(0.0001234) == "0.000123");
  CHECK(short_number(0.05) == "0.05");
  CHECK(short_number(9999) == "9999");
  CHECK(short_number(123456) == "123.5k");
  CHECK(short_number(-2.5e9) == "-2.5G");
  CHECK(short_number(1e16) == "1e+16");
}

TEST_CASE("numbers read the same in all places") {
  CHECK(short_number(0.0123456) == "0.01235");
  CHECK(short_number(999'950) == "1M");
  CHECK(short_number(12'345) == "12.35k");
  CHECK(short_number(std::nan("")) == no_value);
  CHECK(money_text(37748) == "$37,748");
  CHECK(money_text(999.999) == "$1,000");
  CHECK(money_text(0.00123) == "$0.00123");
  CHECK(money_text(0.0000024) == "$0.0000024");
  CHECK(money_text(-2) == minus + std::string("$2.00"));
  CHECK(money_text(5, "EUR") == "5.00 EUR");
  CHECK(time_text(0.0032) == "3.2 ms");
  CHECK(time_text(59.96) == "1 min");
  CHECK(time_text(3899) == "1 h 04 min");
  CHECK(time_text(259'200) == "3 d");
}

TEST_CASE("a value that is unknown is a dash in every unit") {
  CHECK(value_text(std::nan(""), Unit::bytes) == no_value);
  CHECK(value_text(std::optional<double>(), Unit::dollars) == no_value);
  CHECK(value_text(std::optional(2.0), Unit::dollars) == "$2.00");
  CHECK(value_text(1234567, Unit::count) == "1,234,567");
}

}  // namespace frugal_test::html_quantity
