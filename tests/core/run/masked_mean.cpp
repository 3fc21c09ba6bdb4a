// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T positions.
#include <doctest/doctest.h>

#include <frugal/core/run/masked_mean.hpp>

#include "support/running.hpp"

#include <limits>

namespace frugal_test::run_masked_mean {

using frugal::Loss;
using frugal::masked_mean;

at::Tensor const mask_BT() {
  return at::tensor({1, 1, 0, 1, 0, 0}, at::kLong).view({2, 3}).to(at::kBool);
}

TEST_CASE("a masked mean is that of the positions under the mask, and weighs them") {
  at::Tensor const values = at::tensor({1.0, 2.0, 50.0, 6.0, 70.0, 80.0}).view({2, 3});
  Loss const loss = masked_mean(values, mask_BT());
  CHECK(loss.value.item<double>() == doctest::Approx(3.0));
  CHECK(loss.weight == 3);
}

TEST_CASE("values with more dimensions than the mask are averaged over these as well") {
  at::manual_seed(3);
  at::Tensor const values = at::randn({2, 3, 4, 5}, at::kDouble);
  Loss const loss = masked_mean(values, mask_BT());
  at::Tensor const wanted = values.masked_select(mask_BT().view({2, 3, 1, 1})).mean();
  CHECK(loss.value.item<double>() == doctest::Approx(wanted.item<double>()).epsilon(1e-12));
  CHECK(loss.weight == 3);
}

TEST_CASE("what is not under the mask has no effect and no gradient, NaN included") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor const values =
      at::tensor({1.0, 2.0, nan, 6.0, nan, nan}).view({2, 3}).requires_grad_();
  Loss const loss = masked_mean(values, mask_BT());
  CHECK(loss.value.item<double>() == doctest::Approx(3.0));
  loss.value.backward();
  CHECK(values.grad().equal(mask_BT().to(at::kDouble) / 3));
}

TEST_CASE("a mask that is false everywhere gives 0 with weight 0, and gradients of 0") {
  at::Tensor const values = at::randn({2, 3}).requires_grad_();
  Loss const loss = masked_mean(values, at::zeros({2, 3}, at::kBool));
  CHECK(loss.value.item<double>() == 0);
  CHECK(loss.weight == 0);
  loss.value.backward();
  CHECK(values.grad().equal(at::zeros({2, 3})));
}

TEST_CASE("a count that the host knows is believed; in host memory counting costs no operator") {
  at::Tensor const values = at::randn({2, 3}), mask = mask_BT();
  CHECK(masked_mean(values, mask, 2).weight == 2);
  auto const known = frugal_test::support::operators_of([&] { masked_mean(values, mask, 3); });
  auto const counted = frugal_test::support::operators_of([&] { masked_mean(values, mask); });
  CHECK(known == counted);
}

TEST_CASE("a mask that does not fit is refused with both shapes") {
  CHECK_THROWS_WITH_AS(masked_mean(at::zeros({2, 3}), at::zeros({3}, at::kBool)),
                       "frugal: the mask does not fit the values (masked_mean): values are [2, 3] "
                       "Float, the mask is [3] Bool. Values are [B, T, ...], the mask [B, T] of "
                       "bool.",
                       frugal::ShapeError);
  CHECK_THROWS_AS(masked_mean(at::zeros({2, 3}), at::ones({2, 3})), frugal::ShapeError);
  CHECK_THROWS_AS(masked_mean(at::zeros({2}), at::zeros({2, 3}, at::kBool)), frugal::ShapeError);
  CHECK_THROWS_AS(masked_mean(at::zeros({2}), at::Tensor()), frugal::ShapeError);
}

}  // namespace frugal_test::run_masked_mean
