// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/rollback.hpp>

namespace frugal_test::policy_rollback_loss_mean {

using frugal::detail::LossMean;

LossMean of(double loss) {
  LossMean mean;
  for (int i = 0; i < 20; ++i) mean.add(loss);
  return mean;
}

TEST_CASE("a jump exceeds a multiple of positive losses") {
  CHECK_FALSE(of(2).jumps(5.99, 3));
  CHECK(of(2).jumps(6.01, 3));
}

TEST_CASE("a jump exceeds negative losses by that distance") {
  // Two times 2 above -2.
  CHECK_FALSE(of(-2).jumps(-1.9, 3));
  CHECK_FALSE(of(-2).jumps(1.99, 3));
  CHECK(of(-2).jumps(2.01, 3));
}

TEST_CASE("losses around zero have the scale of their absolute values") {
  LossMean mean;
  for (int i = 0; i < 40; ++i) mean.add(i % 2 == 0 ? 1 : -1);
  CHECK_FALSE(mean.jumps(1.5, 3));
  CHECK(mean.jumps(2.5, 3));
}

TEST_CASE("there is no jump among the first twenty losses") {
  LossMean mean;
  for (int i = 0; i < 19; ++i) mean.add(1);
  CHECK_FALSE(mean.jumps(1e9, 2));
  mean.add(1);
  CHECK(mean.jumps(1e9, 2));
}

TEST_CASE("a mean is saved and loaded with the scale of its losses") {
  LossMean saved = of(-2);
  frugal::StateDict memory;
  frugal::StateWriter writer(memory);
  saved.persist(writer);
  LossMean mean;
  frugal::StateReader reader(memory);
  mean.persist(reader);
  CHECK(mean.value() == -2);
  CHECK(mean.jumps(2.01, 3));
  CHECK_FALSE(mean.jumps(1.99, 3));
}

}  // namespace frugal_test::policy_rollback_loss_mean
