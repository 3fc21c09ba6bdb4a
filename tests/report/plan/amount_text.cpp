// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/plan/amount_text.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace frugal_test::plan_amount_text {

using frugal::plan::amount_text;
using frugal::plan::dollars_text;

/// What C's printf writes in the locale "C".
std::string printed(double amount) {
  char text[340];
  std::snprintf(text, sizeof text, std::abs(amount) < 1 ? "%.6g" : "%.2f", amount);
  return text;
}

TEST_CASE("an amount has cents from 1 on and six digits below, as printf writes them") {
  CHECK(amount_text(12.5) == "12.50");
  CHECK(amount_text(1) == "1.00");
  CHECK(amount_text(0.00123456789) == "0.00123457");
  CHECK(amount_text(0) == "0");
  for (double const each :
       {0.0, -0.0, 0.25, -0.25, 1e-5, -3e-300, 0.9999999, 1.0, -1.005, 2.675, 37748.0, 1e22,
        std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min(),
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    CHECK(amount_text(each) == printed(each));
  }
}

TEST_CASE("dollars have their sign first and a comma before each three digits") {
  CHECK(dollars_text(905952) == "$905,952.00");
  CHECK(dollars_text(1234567.891) == "$1,234,567.89");
  CHECK(dollars_text(100) == "$100.00");
  CHECK(dollars_text(-999.5) == "-$999.50");
  CHECK(dollars_text(-1000) == "-$1,000.00");
  CHECK(dollars_text(0.004) == "$0.004");  // and not $0.00
  CHECK(dollars_text(0) == "$0");
  CHECK(dollars_text(std::numeric_limits<double>::max()).size() > 400);
}

}  // namespace frugal_test::plan_amount_text
