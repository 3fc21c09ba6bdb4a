// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint/heartbeat.hpp>

#include "support/files.hpp"

#include <fstream>

namespace frugal_test::checkpoint_heartbeat {

using frugal::detail::Heartbeat;
using support::TemporaryFolder;

TEST_CASE("the last beat is what is read") {
  TemporaryFolder const folder;
  {
    Heartbeat const heart(folder / "heartbeat");
    heart.beat({.step = 1234567, .seconds = 100.25});
    heart.beat({.step = 8, .seconds = 0.5});
  }
  auto const last = Heartbeat::read(folder / "heartbeat");
  REQUIRE(last);
  CHECK(last->step == 8);
  CHECK(last->seconds == 0.5);
}

TEST_CASE("no heartbeat, an empty one and garbage are nothing") {
  TemporaryFolder const folder;
  CHECK_FALSE(Heartbeat::read(folder / "heartbeat"));
  std::ofstream(folder / "empty").flush();
  CHECK_FALSE(Heartbeat::read(folder / "empty"));
  std::ofstream(folder / "garbage") << "step by step";
  CHECK_FALSE(Heartbeat::read(folder / "garbage"));
}

TEST_CASE("a heartbeat that cannot be written is no error") {
  Heartbeat const heart("/nowhere/at/all");
  CHECK_NOTHROW(heart.beat({.step = 1, .seconds = 1}));
}

}  // namespace frugal_test::checkpoint_heartbeat
