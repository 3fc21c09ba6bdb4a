// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/progress/pace.hpp>

#include <chrono>
#include <cstdint>

namespace frugal_test::policy_progress_pace {

using frugal::detail::Pace;

/// A pace of a run that has begun at 0 s, and is told seconds.
struct Told {
  explicit Told(std::uint64_t first_step) {
    pace.begin(at(0));
    pace.first(first_step, 8 * first_step);
  }
  static Pace::clock::time_point at(double seconds) {
    return Pace::clock::time_point(
        std::chrono::duration_cast<Pace::clock::duration>(std::chrono::duration<double>(seconds)));
  }
  void update(double seconds, std::uint64_t step, std::optional<double> waited = {}) {
    pace.update(at(seconds), step, 8 * step, waited);
  }
  Pace pace;
};

TEST_CASE("rate and time left follow the steps since the last redraw and all of them") {
  Told run(0);
  run.update(10, 1);
  CHECK(run.pace.samples_per_second() == doctest::Approx(0.8));
  CHECK_FALSE(run.pace.seconds_left(1, 101));  // the first step also sets up
  run.update(20, 11);
  CHECK(run.pace.samples_per_second() == doctest::Approx(0.7 * 0.8 + 0.3 * 8));
  CHECK(*run.pace.seconds_left(11, 111) == doctest::Approx(100));
}

TEST_CASE("after a Rollback behind the step of the resume the time left is that of the steps") {
  Told run(9000);
  run.update(4, 9001);
  run.update(3600, 9900);
  double const per_step = 3596.0 / 899;
  CHECK(*run.pace.seconds_left(9900, 10000) == doctest::Approx(100 * per_step));
  double const rate = run.pace.samples_per_second();
  run.update(3610, 8000);
  CHECK(*run.pace.seconds_left(8000, 10000) == doctest::Approx(2000 * per_step));
  CHECK(run.pace.samples_per_second() == rate);
  run.update(3610 + 100 * per_step, 8100);
  CHECK(*run.pace.seconds_left(8100, 10000) == doctest::Approx(1900 * per_step));
  CHECK(run.pace.steps_since_first(8100) == 0);
}

TEST_CASE("the wait for data is its share of the time since the last redraw") {
  Told run(0);
  run.update(1, 1, 0.0);
  CHECK_FALSE(run.pace.data_wait());
  run.update(3, 2, 0.5);
  CHECK(*run.pace.data_wait() == doctest::Approx(0.25));
}

}  // namespace frugal_test::policy_progress_pace
