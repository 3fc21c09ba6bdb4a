// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/run/run_progress.hpp>
#include <frugal/policy/checkpoint/interval.hpp>
#include <frugal/report/cost_meter.hpp>

#include <time.h>

#include <chrono>
#include <concepts>
#include <utility>

namespace frugal_test::run_wall_clock {

using frugal::WallClock;

std::chrono::nanoseconds since_boot() {
  timespec time{};
  REQUIRE(::clock_gettime(CLOCK_BOOTTIME, &time) == 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST_CASE("the wall clock is the one that goes on while the machine is suspended") {
  auto const before = since_boot();
  auto const now = WallClock::now().time_since_epoch();
  auto const after = since_boot();
  CHECK(before <= now);
  CHECK(now <= after);
  double const seconds = WallClock::seconds();
  CHECK(std::chrono::duration<double>(after).count() <= seconds);
  CHECK(seconds <= std::chrono::duration<double>(since_boot()).count());
  CHECK(WallClock::shortcoming() == nullptr);
}

TEST_CASE("the time of a run, its bill and a cadence in time go by this clock") {
  CHECK((std::same_as<frugal::RunProgress::Clock, WallClock>));
  CHECK((frugal::CostMeter{}.clock == &WallClock::seconds));
  using Timed = frugal::detail::Interval<frugal::Every<30, frugal::Second>>;
  CHECK((requires(Timed& each) { each.begin({}, WallClock::now()); }));
}

}  // namespace frugal_test::run_wall_clock
