// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/policy/step_pace.hpp>

namespace frugal_test::policy_step_pace {

using frugal::detail::StepPace;

TEST_CASE("the pace is that of the steps after the first, whose setting up it leaves out") {
  StepPace pace;
  CHECK_FALSE(pace.seconds_left(100, 0));
  pace.step(1, 60);
  CHECK(pace.steps() == 0);
  CHECK_FALSE(pace.seconds_left(100, 1));
  pace.step(2, 62);
  CHECK(pace.steps() == 1);
  CHECK(*pace.seconds_left(100, 2) == 98 * 2);
  pace.step(12, 92);  // ten steps of three seconds
  CHECK(pace.steps() == 11);
  CHECK(*pace.seconds_left(100, 12) == doctest::Approx(88 * 32.0 / 11));
}

TEST_CASE("a run of unknown length has no time left, and one past its end none") {
  StepPace pace;
  pace.step(1, 0);
  pace.step(2, 1);
  CHECK_FALSE(pace.seconds_left({}, 2));
  CHECK(*pace.seconds_left(2, 2) == 0);
  CHECK(*pace.seconds_left(1, 2) == 0);
}

TEST_CASE("time after a step, such as a validation's, counts with the next one") {
  StepPace pace;
  pace.step(1, 0);
  pace.step(2, 1);
  pace.step(2, 9);
  pace.step(3, 10);
  CHECK(*pace.seconds_left(13, 3) == 10 * 5);
}

TEST_CASE("a Rollback changes no pace, wherever it goes back to") {
  for (std::uint64_t const back : {9100U, 8000U, 0U}) {
    StepPace pace;
    pace.step(9000, 0);
    pace.step(9200, 400);
    pace.step(back, 1000);  // the time is that of the steps that are undone, and of others
    CHECK(*pace.seconds_left(10000, back) == (10000 - back) * 2);
    pace.step(back + 50, 1100);
    CHECK(pace.steps() == 250);
    CHECK(*pace.seconds_left(10000, back + 50) == (10000 - back - 50) * 2);
  }
}

}  // namespace frugal_test::policy_step_pace
