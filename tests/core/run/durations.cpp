// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/run/durations.hpp>

#include <chrono>

namespace frugal_test::run_durations {

using namespace frugal;

TEST_CASE("times and lengths of training are told apart, and have their numbers") {
  static_assert(detail::is_wall_time<Seconds<3>> && detail::is_wall_time<Hours<1>>);
  static_assert(!detail::is_wall_time<Steps<3>> && detail::is_step_count<Steps<3>>);
  static_assert(detail::is_early_phase<Epochs<2>> && !detail::is_step_count<Epochs<2>>);
  static_assert(Steps<20>::count == 20);
  CHECK(detail::wall_time<Minutes<2>>() == std::chrono::seconds(120));
  CHECK(Steps<3>::over({.step = 3}));
  CHECK_FALSE(Epochs<3>::over({.epoch = 2}));
}

TEST_CASE("PerEpoch is due at each epoch's end and at no step") {
  static_assert(PerEpoch::per_epoch);
  CHECK(PerEpoch{}.due_at_epoch_end({.epoch = 7}));
  CHECK_FALSE(PerEpoch{}.due_at_step({.step = 1}));
}

}  // namespace frugal_test::run_durations
