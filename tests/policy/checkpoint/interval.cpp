// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint/interval.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace frugal_test::checkpoint_interval {

using namespace frugal;
using frugal::detail::automatic_interval;
using frugal::detail::Interval;
using frugal::plan::daly_interval;
using Clock = frugal::WallClock;

constexpr double day = 86400;

/// Expected wall time of a run of `work` seconds with a checkpoint of `cost` seconds every
/// `interval` seconds, on machines with a lifetime of `lifetime` seconds (Poisson) and free
/// restarts: Daly's complete model (2006), equation 20.
double expected_time(double work, double interval, double cost, double lifetime) {
  return lifetime * (std::exp((interval + cost) / lifetime) - 1) * work / interval;
}

TEST_CASE("Daly's interval loses less than one that is shorter or longer") {
  for (double const cost : {1.0, 30.0, 300.0, 1800.0}) {
    for (double const lifetime : {3600.0, 6 * 3600.0, day}) {
      if (cost > lifetime / 3) continue;  // his estimate holds for cheap checkpoints
      CAPTURE(cost);
      CAPTURE(lifetime);
      double const best = daly_interval(cost, lifetime);
      double const at_best = expected_time(day, best, cost, lifetime);
      CHECK(at_best < expected_time(day, best * 1.3, cost, lifetime));
      CHECK(at_best < expected_time(day, best / 1.3, cost, lifetime));
    }
  }
}

TEST_CASE("Daly's interval is Young's if a checkpoint is cheap") {
  CHECK(daly_interval(1, day) == doctest::Approx(std::sqrt(2 * day)).epsilon(0.01));
}

TEST_CASE("a checkpoint that takes longer than a machine lives is made once per lifetime") {
  CHECK(daly_interval(100, 50) == 50);
}

TEST_CASE("an automatic interval keeps the stalls below the share") {
  double const seconds = automatic_interval({.stall = 7, .write = 0}, 0.035, std::nullopt);
  CHECK(7 / (7 + seconds) == doctest::Approx(0.035));
}

TEST_CASE("a writing thread takes at most a tenth of the time") {
  CHECK(automatic_interval({.stall = 0.001, .write = 4}, 0.035, std::nullopt) == 40);
}

TEST_CASE("with a machine's lifetime, the automatic interval is Daly's") {
  CHECK(automatic_interval({.stall = 30, .write = 0}, 0.035, day) == daly_interval(30, day));
}

/// Steps at which a cadence makes a save due, queried only when the cadence asks.
template <class Cadence>
struct Walk {
  std::vector<std::uint64_t> due;
  std::uint64_t looks = 0;

  Walk(std::uint64_t steps, std::chrono::microseconds step_time, Counters now = {}) {
    Interval<Cadence> interval({}, 0.035, std::nullopt);
    Clock::time_point time{};
    interval.begin(now, time);
    for (std::uint64_t i = 0; i < steps; ++i) {
      ++now.step;
      now.sample += now.window_samples = 8;
      time += step_time;
      bool crossed = false;
      if constexpr (Interval<Cadence>::by_counts) crossed = Cadence{}.due_at_step(now);
      if (!crossed && now.step < interval.next_look()) continue;
      ++looks;
      if (!interval.look(now, time)) continue;
      due.push_back(now.step);
      interval.saved({.stall = 0.1, .write = 0}, time);
    }
  }
};

TEST_CASE("a cadence in steps is due at its multiples and at no other step") {
  CHECK(Walk<Every<50>>(220, std::chrono::microseconds(100)).due ==
        std::vector<std::uint64_t>{50, 100, 150, 200});
}

TEST_CASE("a run that resumes between two multiples is due at the next one") {
  Counters now;
  now.step = 73;
  CHECK(Walk<Every<50>>(60, std::chrono::microseconds(100), now).due ==
        std::vector<std::uint64_t>{100});
}

TEST_CASE("a cadence in samples is due when a window crosses a multiple") {
  CHECK((Walk<Every<100, Sample>>(40, std::chrono::microseconds(100)).due ==
         std::vector<std::uint64_t>{13, 25, 38}));
}

TEST_CASE("a cadence in seconds is due within a second of its time, however long a step takes") {
  for (int const micros : {50, 1000, 30000, 900000}) {
    CAPTURE(micros);
    auto const steps = static_cast<std::uint64_t>(3'100'000 / micros);
    Walk<Every<1, Second>> const walk(steps, std::chrono::microseconds(micros));
    REQUIRE_FALSE(walk.due.empty());
    CHECK(walk.due.size() <= 3);
    CHECK(static_cast<double>(walk.due.front()) * micros >= 1e6);
    CHECK(static_cast<double>(walk.due.front()) * micros <= 2e6);
  }
}

TEST_CASE("between saves the clock is read a few times per second, not at each step") {
  Walk<Every<3600, Second>> const walk(1'000'000, std::chrono::microseconds(50));  // 50 s
  CHECK(walk.due.empty());
  CHECK(walk.looks < 150);
  CHECK(walk.looks > 50);
}

TEST_CASE("Every<Auto> spaces its saves by their cost") {
  // 0.1 s per save and 3.5% of the time: about one save every 2.8 s.
  Walk<Every<Auto>> const walk(60'000, std::chrono::milliseconds(1));
  CHECK(walk.due.size() >= 15);
  CHECK(walk.due.size() <= 22);
}

TEST_CASE("a cadence in epochs is due at no step") {
  CHECK(Walk<Every<1, Epoch>>(1000, std::chrono::microseconds(100)).due.empty());
}

}  // namespace frugal_test::checkpoint_interval
