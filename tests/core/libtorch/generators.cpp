// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/generators.hpp>

#include <ATen/ATen.h>

namespace frugal_test::libtorch_generators {

using frugal::detail::GeneratorStates;

TEST_CASE("restored generators draw the same numbers again") {
  at::manual_seed(4);
  GeneratorStates states;
  states.take(c10::Device(c10::kCPU));
  at::Tensor const drawn = at::rand({5});
  at::rand({7});
  states.restore();
  CHECK(at::equal(at::rand({5}), drawn));
  states.restore();
  CHECK(at::equal(at::rand({5}), drawn));
}

TEST_CASE("a run on the CPU uses one generator, and a device is named without its index") {
  auto const all = frugal::detail::generators_of(c10::Device(c10::kCPU));
  REQUIRE(all.size() == 1);
  CHECK(all[0].first == "cpu");
  CHECK(frugal::detail::kind_of_device(c10::Device(c10::kCUDA, 3)) == "cuda");
}

}  // namespace frugal_test::libtorch_generators
