// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/run_status.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include <string>
#include <vector>

namespace frugal_test::run_status {

using frugal::RunStatus;
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

TEST_CASE("the first policy that asks to stop is remembered, of the run and of the event") {
  RunStatus status;
  status.request_stop("EarlyStop");
  status.request_stop("Budget");
  CHECK(status.stopped_by == "EarlyStop");
  CHECK(status.stop_requested_by == "EarlyStop");
  // A resume within the event has loaded the name of an earlier stop.
  status.stopped_by = "StopAfter";
  status.stop_requested_by.clear();
  status.request_stop("Budget");
  CHECK(status.stopped_by == "StopAfter");
  CHECK(status.stop_requested_by == "Budget");
}

TEST_CASE("a run that was preempted has ended by that, unless a policy has stopped it") {
  RunStatus status;
  CHECK(status.ended_by().empty());
  status.request_preemption("Spot");
  status.request_preemption("another process");
  CHECK(status.ended_by().empty());
  status.preempted = true;
  CHECK(status.ended_by() == "Spot");
  status.request_stop("EarlyStop");
  CHECK(status.ended_by() == "EarlyStop");
}

TEST_CASE("going back clears the stop and the request for preemption") {
  RunStatus status{.stopped = true, .is_preempting = true, .preempted_by = "Spot"};
  status.request_stop("EarlyStop");
  status.clear_stop();
  CHECK_FALSE(status.stopped);
  CHECK_FALSE(status.is_preempting);
  CHECK(status.stopped_by.empty());
  CHECK(status.stop_requested_by.empty());
  CHECK(status.preempted_by.empty());
}

TEST_CASE("an unfinished validation travels among the names of its event") {
  std::vector<std::string> names{"Log", "Schedule"};
  frugal::UnfinishedValidation here{.completed_by = {"EarlyStop", "Plateau"}};
  here.add_to(names);
  CHECK(names == std::vector<std::string>{"Log", "Schedule"});  // none was measured
  here.measured = true;
  here.add_to(names);
  frugal::UnfinishedValidation later{.measured = true, .completed_by = {"stale"}};
  later.take_from(names);
  CHECK(later.measured);
  CHECK(later.completed_by == std::vector<std::string>{"EarlyStop", "Plateau"});
  CHECK(names == std::vector<std::string>{"Log", "Schedule"});
  later.take_from(names);
  CHECK_FALSE(later.measured);
  CHECK(later.completed_by.empty());
}

}  // namespace frugal_test::run_status
