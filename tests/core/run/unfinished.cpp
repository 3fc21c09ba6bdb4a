// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/unfinished.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::run_unfinished {

using frugal::StateDict;
using frugal::StateReader;
using frugal::StateWriter;
using frugal::Unfinished;

Unfinished loaded(StateDict const& memory) {
  Unfinished unfinished{.hook = "stale", .told = {"stale"}, .first = 9};
  StateReader reader(memory);
  unfinished.persist(reader);
  CHECK_FALSE(reader.unread());
  return unfinished;
}

TEST_CASE(
    "an interrupted event is saved by the names of its hook and of the subscribers that saw it") {
  Unfinished saved{.hook = "on_step", .told = {"Log", "Log.1"}};
  StateDict memory;
  StateWriter writer(memory);
  saved.persist(writer);
  Unfinished const here = loaded(memory);
  CHECK(here.hook == "on_step");
  CHECK(here.told == std::vector<std::string>{"Log", "Log.1"});
  CHECK_FALSE(here.first);
}

TEST_CASE("a checkpoint with numbers instead of names identifies the interrupted event") {
  auto const numbered = [](std::uint64_t hook, std::uint64_t subscriber) {
    StateDict memory;
    memory.values["unfinished/hook"] = hook;
    memory.values["unfinished/subscriber"] = subscriber;
    return loaded(memory);
  };
  CHECK(numbered(7, 3).hook == "on_step");
  CHECK(numbered(7, 3).first == 3);
  CHECK(numbered(7, 3).told.empty());
  CHECK(numbered(10, 0).hook == "on_epoch_end");
  CHECK(numbered(std::uint64_t(-1), 0).hook.empty());
}

}  // namespace frugal_test::run_unfinished
