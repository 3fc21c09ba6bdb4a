// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/plan/money.hpp>

#include <cmath>
#include <concepts>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>

namespace frugal_test::plan_money {

using namespace frugal::plan;

static_assert(PricePerDevice(2.0) * DeviceHours(8 * 72.0) == Usd(1152));
static_assert(DeviceHours(3) * PricePerDevice(2.0) == Usd(6));
static_assert(PricePerNode(16.0) * NodeHours(72) == Usd(1152));
static_assert(per_device(PricePerNode(16.0), 8) == PricePerDevice(2));
static_assert(per_node(PricePerDevice(2.0), 8) == PricePerNode(16));
static_assert(in_bytes(GigabitsPerSecond(600)) == GigabytesPerSecond(75));
static_assert(in_bits(in_bytes(Gigabits(24))) == Gigabits(24));
static_assert(in_bits(GigabytesPerSecond(12.5)) == GigabitsPerSecond(100));
static_assert(Gigabytes(150) / GigabytesPerSecond(75) == Seconds(2));
static_assert(Usd(1152) / PricePerDevice(2.0) == DeviceHours(576));
static_assert(gigabytes(2.5e9) == Gigabytes(2.5));
// The types are different, and no number or other quantity becomes one silently.
static_assert(!std::same_as<PricePerDevice, PricePerNode>);
static_assert(!std::is_convertible_v<PricePerDevice, PricePerNode>);
static_assert(!std::is_constructible_v<PricePerNode, PricePerDevice>);
static_assert(!std::is_convertible_v<double, Usd> && !std::is_convertible_v<Usd, double>);
static_assert(!std::is_convertible_v<Gigabits, Gigabytes>);

TEST_CASE("amounts of one unit add, compare and divide to a plain number") {
  Usd sum = Usd(3) + Usd(4.5) - Usd(0.5);
  sum += Usd(1);
  sum -= Usd(2);
  CHECK(sum == Usd(6));
  CHECK(sum * 2 == 2 * sum);
  CHECK((sum / 4).value() == 1.5);
  CHECK(sum / Usd(3) == 2);
  CHECK(-sum < Usd(0));
  CHECK(Usd(0.1) < Usd(0.2));
}

TEST_CASE("the same hours cost the same by device and by node") {
  PricePerNode const node(32.0);
  CHECK((node * NodeHours(72)).value() ==
        doctest::Approx((per_device(node, 8) * DeviceHours(72 * 8)).value()));
}

}  // namespace frugal_test::plan_money

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
