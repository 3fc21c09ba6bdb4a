// SPDX-License-Identifier: Apache-2.0
#include <frugal/policy/average/weights.hpp>

#include <doctest/doctest.h>

#include <ATen/ATen.h>

namespace frugal_test::policy_average_weights {

using frugal::detail::bytes_of_average;
using frugal::detail::type_of_average;

TEST_CASE("an average has at least the bits of FP32, and integers have none") {
  auto const type = [](at::ScalarType of) { return type_of_average(at::zeros({3}, of)); };
  CHECK((type(at::kFloat) == at::kFloat));
  CHECK((type(at::kDouble) == at::kDouble));
  CHECK((type(at::kHalf) == at::kFloat));
  CHECK((type(at::kBFloat16) == at::kFloat));
  CHECK((type(at::kComplexHalf) == at::kComplexFloat));
  CHECK((type(at::kComplexDouble) == at::kComplexDouble));
  CHECK((type(at::kLong) == at::ScalarType::Undefined));
  CHECK(bytes_of_average(at::zeros({3}, at::kBFloat16)) == 12);
  CHECK(bytes_of_average(at::zeros({3}, at::kDouble)) == 24);
  CHECK(bytes_of_average(at::zeros({3}, at::kLong)) == 0);
}

}  // namespace frugal_test::policy_average_weights
