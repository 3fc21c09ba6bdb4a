// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/budget/limit.hpp>

#include <string>

namespace frugal_test::budget_limit {

using frugal::detail::amount_text;

TEST_CASE("amounts have four digits below 1000, all before the point, and no exponent") {
  CHECK(amount_text(16.5, "USD") == "16.5 USD");
  CHECK(amount_text(20, "USD") == "20 USD");
  CHECK(amount_text(1.23456, "h") == "1.235 h");
  CHECK(amount_text(20000, "USD") == "20000 USD");
  CHECK(amount_text(123456.7, "USD") == "123457 USD");
  CHECK(amount_text(0.00002, "USD") == "0.00002 USD");
  CHECK(amount_text(0, "kWh") == "0 kWh");
  CHECK(amount_text(1e300, "USD").find('e') == std::string::npos);
}

}  // namespace frugal_test::budget_limit
