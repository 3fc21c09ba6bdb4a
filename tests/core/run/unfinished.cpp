// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/unfinished.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include <string>
#include <vector>

namespace frugal_test::run_unfinished {

using frugal::StateDict;
using frugal::StateReader;
using frugal::StateWriter;
using frugal::Unfinished;

Unfinished loaded(StateDict const& memory) {
  Unfinished unfinished{.hook = "stale", .completed_by = {"stale"}};
  StateReader reader(memory);
  unfinished.persist(reader);
  CHECK_FALSE(reader.unread());
  return unfinished;
}

TEST_CASE(
    "an interrupted event is saved by the names of its hook and of the subscribers that saw it") {
  Unfinished saved{.hook = "on_step", .completed_by = {"Log", "Log.1"}};
  StateDict memory;
  StateWriter writer(memory);
  saved.persist(writer);
  Unfinished const here = loaded(memory);
  CHECK(here.hook == "on_step");
  CHECK(here.completed_by == std::vector<std::string>{"Log", "Log.1"});
}

}  // namespace frugal_test::run_unfinished
