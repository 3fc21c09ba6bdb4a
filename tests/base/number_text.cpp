// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/number_text.hpp>

#include "support/locales.hpp"

#include <limits>
#include <string>

namespace frugal_test::store_number_text {

using frugal::detail::fixed;
using frugal::detail::fixed_short;
using frugal::detail::general;

// As C's standard defines %f and %g.
void check_digits() {
  CHECK(fixed(1234567.25, 1) == "1234567.2");
  CHECK(fixed(-0.125, 2) == "-0.12");
  CHECK(fixed(3, 0) == "3");
  CHECK(fixed(std::numeric_limits<double>::max(), 1).size() == 311);
  CHECK(fixed_short(20, 6) == "20");
  CHECK(fixed_short(1200, 0) == "1200");
  CHECK(fixed_short(-3.25, 6) == "-3.25");
  CHECK(general(0.1, 7) == "0.1");
  CHECK(general(1234567.25, 4) == "1.235e+06");
  CHECK(general(0.00012345, 3) == "0.000123");
  CHECK(general(-1e-300, 3) == "-1e-300");
  CHECK(general(std::numeric_limits<double>::infinity(), 3) == "inf");
}

TEST_CASE("digits are those of printf in the C locale") { check_digits(); }

TEST_CASE("no locale changes a digit") {
  support::GroupedLocale const grouped;
  check_digits();
  support::CommaLocale const comma;
  if (comma.works()) check_digits();
}

}  // namespace frugal_test::store_number_text
