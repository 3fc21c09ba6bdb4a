// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/plan/money.hpp>

#include <concepts>
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
