// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/locales.hpp"

#include <doctest/doctest.h>

#include <frugal/base/number_texts.hpp>

#include <clocale>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace frugal_test::watch_number_texts {

using namespace frugal::watch;

TEST_CASE("a number has four significant digits, in the form that printf gives it") {
  for (double const value : {0.0, -0.0, 0.71309, 12.4, 1.2e-5, 1234567.0, -0.5, 1e300, 99999.0,
                             0.0001, 0.00001, std::numeric_limits<double>::infinity()}) {
    char text[64];
    std::snprintf(text, sizeof text, "%.4g", value);
    CHECK(short_number(value) == text);
  }
  CHECK(short_number(std::nan("")) == "nan");
}

TEST_CASE("a locale with a decimal comma changes no number") {
  // Of these, those that the machine has; without any, this shows nothing.
  for (char const* const name : {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "fr_FR.utf8"}) {
    if (std::setlocale(LC_NUMERIC, name) == nullptr) continue;
    CAPTURE(name);
    CHECK(short_number(0.5) == "0.5");
    CHECK(rate_text(12345) == "12.3k");
    CHECK(frugal::detail::bytes_text(1536) == "1.5 KiB");
  }
  std::setlocale(LC_NUMERIC, "C");
}

TEST_CASE("bytes have one decimal from KiB on") {
  CHECK(frugal::detail::bytes_text(0) == "0 B");
  CHECK(frugal::detail::bytes_text(1023) == "1023 B");
  CHECK(frugal::detail::bytes_text(3.0 * (1U << 30U) / 2) == "1.5 GiB");
}

TEST_CASE("a rate has three digits and a unit") {
  CHECK(rate_text(0) == "0");
  CHECK(rate_text(950) == "950");
  CHECK(rate_text(999.4) == "999");
  CHECK(rate_text(999.6) == "1k");
  CHECK(rate_text(12345) == "12.3k");
  CHECK(rate_text(999999) == "1M");
  CHECK(rate_text(4.56e6) == "4.56M");
  CHECK(rate_text(7.8e9) == "7.8G");
}

TEST_CASE("a duration is shown in its two largest units") {
  CHECK(duration_text(0) == "0s");
  CHECK(duration_text(59.4) == "59s");
  CHECK(duration_text(59.6) == "1m00s");
  CHECK(duration_text(187) == "3m07s");
  CHECK(duration_text(7500) == "2h05m");
  CHECK(duration_text(273600) == "3d04h");
}

TEST_CASE("an invalid duration is a question mark") {
  CHECK(duration_text(-1) == "?");
  CHECK(duration_text(std::numeric_limits<double>::quiet_NaN()) == "?");
}

}  // namespace frugal_test::watch_number_texts

namespace frugal_test::watch_bytes {

using frugal::detail::bytes_text;

TEST_CASE("a size has the largest unit of which it has one") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(0x1p31) == "2.0 GiB");
  CHECK(bytes_text(0x1p52) == "4096.0 TiB");
}

TEST_CASE("a negative size has the unit of its amount") {
  CHECK(bytes_text(-1023) == "-1023 B");
  CHECK(bytes_text(-0x1p31) == "-2.0 GiB");
}

TEST_CASE("a size reads the same in every locale") {
  support::GroupedLocale const grouped;
  CHECK(bytes_text(0x1p52) == "4096.0 TiB");
  support::CommaLocale const comma;
  if (comma.works()) CHECK(bytes_text(1536) == "1.5 KiB");
}

}  // namespace frugal_test::watch_bytes
