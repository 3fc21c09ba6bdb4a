// SPDX-License-Identifier: Apache-2.0
// Step counters on a device: how often the host reads them.
#include <doctest/doctest.h>

#include <frugal/policy/optimize/fused_bucket.hpp>

#include "support/fake_device.hpp"
#include "support/running.hpp"

namespace frugal_test::device_step_counters {

using frugal::detail::StepCounters;

TEST_CASE("a save reads the device once, however many parameters") {
  at::Tensor const parameter = at::zeros({2}).to(fake::device());
  StepCounters counters;
  for (int i = 0; i < 20; ++i) counters.add(parameter);
  counters.choose({0, 1, 2, 3});
  for (int i = 0; i < 3; ++i) counters.count(false, {});
  auto const operators = support::operators_of([&] {
    auto const counts = counters.read();
    for (std::size_t i = 0; i < 20; ++i) CHECK(counts[i] == (i < 4 ? 3 : 0));
  });
  CHECK(operators.count("aten::_local_scalar_dense") == 0);
  CHECK(operators.at("aten::stack") == 1);
}

TEST_CASE("a step reads nothing from the device once counters have diverged") {
  at::Tensor const parameter = at::zeros({2}).to(fake::device());
  StepCounters counters;
  for (int i = 0; i < 3; ++i) counters.add(parameter);
  counters.choose({0, 1});
  counters.count(false, {});
  counters.end_step();
  counters.choose({0, 1, 2});
  CHECK(counters.mixed());
  CHECK(counters.has_begun(0));
  CHECK_FALSE(counters.has_begun(2));
  auto const operators = support::operators_of([&] {
    for (int i = 0; i < 5; ++i) {
      counters.count(false, {});
      counters.end_step();
      CHECK_FALSE(counters.mixed());
    }
  });
  CHECK(operators.count("aten::_local_scalar_dense") == 0);
  CHECK((counters.read() == std::vector<double>{6, 6, 5}));
}

}  // namespace frugal_test::device_step_counters
