// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/control.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include <string>
#include <vector>

namespace frugal_test::control {

using frugal::Control;
using frugal::End;
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
  Control control;
  control.ask(End::stop, "EarlyStop");
  control.ask(End::stop, "Budget");
  CHECK(control.stopped_by() == "EarlyStop");
  CHECK_FALSE(control.is_closed());
  CHECK(control.take_stop_request() == "EarlyStop");
  CHECK(control.take_stop_request().empty());
  // A resume within the event has loaded the name of an earlier stop.
  control.agree_on_stop("StopAfter");
  control.ask(End::stop, "Budget");
  CHECK(control.stopped_by() == "StopAfter");
  CHECK(control.take_stop_request() == "Budget");
}

TEST_CASE("a run that was preempted has ended by that, unless a policy has stopped it") {
  Control control;
  CHECK(control.ended_by().empty());
  control.ask(End::preempt, "Spot");
  control.ask(End::preempt, "another process");
  CHECK(control.ended_by().empty());
  CHECK_FALSE(control.preempted());
  control.close(End::preempt);
  CHECK(control.is_closed());
  CHECK(control.preempted());
  CHECK(control.ended_by() == "Spot");
  control.close(End::stop);  // a run that is preempted stays so
  CHECK(control.preempted());
  control.ask(End::stop, "EarlyStop");
  CHECK(control.ended_by() == "EarlyStop");
}

TEST_CASE("an interruption by the user is a preemption that has their name") {
  for (bool const asked_first : {true, false}) {
    CAPTURE(asked_first);
    Control control;
    control.ask(End::preempt, "Spot");
    if (asked_first) control.ask(End::interrupt, "Ctrl-C");
    control.close(End::preempt);
    if (!asked_first) control.ask(End::interrupt, "Ctrl-C");
    CHECK(control.interrupted());
    CHECK(control.preempted());
    CHECK(control.ended_by() == "Ctrl-C");
  }
  // A run that came to its end is none that was preempted.
  Control whole;
  whole.ask(End::interrupt, "Ctrl-C");
  CHECK(whole.interrupted());
  CHECK_FALSE(whole.preempted());
  CHECK(whole.ended_by().empty());
}

TEST_CASE("going back clears the stop and the request for preemption") {
  Control control;
  control.ask(End::preempt, "Spot");
  control.ask(End::stop, "EarlyStop");
  control.preempt_after_event(true);
  control.close(End::preempt);
  control.reopen();
  CHECK_FALSE(control.is_closed());
  CHECK_FALSE(control.preempted());
  CHECK_FALSE(control.is_preempting());
  CHECK(control.stopped_by().empty());
  CHECK(control.take_stop_request().empty());
  CHECK(control.preempted_by().empty());
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

}  // namespace frugal_test::control
