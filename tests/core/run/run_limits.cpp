// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/run_limits.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include "core/loop/stand_ins.hpp"

namespace frugal_test::run_horizon {

using namespace frugal_test::loop;
using frugal::detail::horizon_of;

TensorDataset ten_batches() {
  return TensorDataset(at::zeros({40, 2}), at::zeros({40}), {.batch = 4});
}

/// Batches of a source without a size.
struct Stream {
  void seek(Cursor const&) {}
  std::optional<Batch> next() { return std::nullopt; }
};

TEST_CASE("default settings mean one epoch") {
  RunLimits const horizon = horizon_of({}, ten_batches(), 1);
  CHECK(horizon.epochs == 1);
  CHECK(horizon.steps == RunLimits::unlimited);
  CHECK(horizon.total_steps == 10);
}

TEST_CASE("steps alone take as many epochs as they need") {
  RunLimits const horizon = horizon_of({.steps = 25}, ten_batches(), 1);
  CHECK(horizon.epochs == RunLimits::unlimited);
  CHECK(horizon.total_steps == 25);
}

TEST_CASE("the first of the limits on epochs and steps ends the run") {
  CHECK(horizon_of({.epochs = 2, .steps = 25}, ten_batches(), 1).total_steps == 20);
  CHECK(horizon_of({.epochs = 3, .steps = 25}, ten_batches(), 1).total_steps == 25);
}

TEST_CASE("a ragged window at the end of an epoch is a step") {
  RunLimits const horizon = horizon_of({.epochs = 2}, ten_batches(), 4);
  CHECK(horizon.steps_per_epoch == 3);
  CHECK(horizon.total_steps == 6);
}

TEST_CASE("of a source without a size only the limit on steps is known") {
  CHECK_FALSE(horizon_of({.epochs = 3}, Stream{}, 1).total_steps);
  CHECK_FALSE(horizon_of({.epochs = 3}, Stream{}, 1).steps_per_epoch);
  CHECK(horizon_of({.steps = 7}, Stream{}, 1).total_steps == 7);
}

TEST_CASE("more epochs than fit a counter end with the limit on steps") {
  RunLimits const horizon =
      horizon_of({.epochs = RunLimits::unlimited, .steps = 30}, ten_batches(), 1);
  CHECK(horizon.total_steps == 30);
}

TEST_CASE("steps that end within an epoch complete fewer epochs than they begin") {
  RunLimits const within = horizon_of({.epochs = 5, .steps = 25}, ten_batches(), 1);
  CHECK(within.complete_epochs() == 2);
  CHECK(within.begun_epochs() == 3);
  RunLimits const whole = horizon_of({.epochs = 3}, ten_batches(), 1);
  CHECK(whole.complete_epochs() == 3);
  CHECK(whole.begun_epochs() == 3);
  CHECK(horizon_of({.epochs = 3}, Stream{}, 1).complete_epochs() == 3);
  CHECK(horizon_of({.steps = 7}, Stream{}, 1).begun_epochs() == RunLimits::unlimited);
}

TEST_CASE("no epochs and no steps are limits like others") {
  CHECK(horizon_of({.epochs = 0}, ten_batches(), 1).total_steps == 0);
  CHECK(horizon_of({.steps = 0}, ten_batches(), 1).total_steps == 0);
}

}  // namespace frugal_test::run_horizon
