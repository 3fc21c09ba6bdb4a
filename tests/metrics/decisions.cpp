// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <doctest/doctest.h>

#include <frugal/metrics/decisions.hpp>

namespace frugal_test::metrics_tally {

using namespace frugal_test::metrics;
using frugal::detail::Tally;
using frugal::detail::TensorTally;

TEST_CASE("a tally adds numbers and scalars of every type") {
  Tally tally;
  tally.add(0.5);
  tally.add(at::tensor(std::int64_t{1} << 40).squeeze());
  tally.add(at::full({}, 0.25, at::kDouble));
  tally.add(at::full({}, 2.0, at::kFloat));
  CHECK(tally.value() == 1099511627776.0 + 2.75);
}

TEST_CASE("a tensor tally adds in double precision, and leaves its parts and copies alone") {
  TensorTally tally;
  CHECK_FALSE(tally.on_host().defined());
  at::Tensor const first = at::full({2}, 1.0, at::kDouble);
  tally.add(first);
  TensorTally const copy = tally;
  tally.add(at::full({2}, 1e-9F));
  CHECK(first.equal(at::ones({2}, at::kDouble)));
  CHECK(copy.on_host().equal(first));
  CHECK(tally.on_host()[0].item<double>() == 1.0 + static_cast<double>(1e-9F));
}

}  // namespace frugal_test::metrics_tally
