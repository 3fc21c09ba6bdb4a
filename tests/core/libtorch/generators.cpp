// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/generators.hpp>

#include <ATen/ATen.h>

#include <stdexcept>

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

TEST_CASE("what seeded() builds follows from the seed, and the generators are as before") {
  at::manual_seed(5);
  at::Tensor const next = at::rand({3});
  at::manual_seed(5);
  auto const draw = [] { return at::rand({4}); };
  at::Tensor const first = frugal::seeded(9, draw);
  CHECK(at::equal(at::rand({3}), next));
  CHECK(at::equal(frugal::seeded(9, draw), first));
  CHECK_FALSE(at::equal(frugal::seeded(10, draw), first));
  at::manual_seed(9);
  CHECK(at::equal(draw(), first));

  at::manual_seed(5);
  CHECK_THROWS_AS(frugal::seeded(9, [] { throw std::runtime_error("no"); }), std::runtime_error);
  CHECK(at::equal(at::rand({3}), next));
}

}  // namespace frugal_test::libtorch_generators
