// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/gradient_norm.hpp>

#include <cmath>

namespace frugal_test::run_gradient_norm {

TEST_CASE("a norm is known once it is computed, on the host or on a device") {
  frugal::GradientNorm norm;
  CHECK_FALSE(norm.known());
  CHECK(std::isnan(norm.value()));
  norm.set(2.5);
  CHECK(norm.known());
  CHECK(norm.value() == 2.5);
  norm.set(at::scalar_tensor(3.0));
  CHECK(norm.value() == 3.0);
}

}  // namespace frugal_test::run_gradient_norm
