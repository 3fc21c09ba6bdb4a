// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/checkpoint_interval.hpp>

#include <cmath>
#include <initializer_list>
#include <random>

namespace frugal_test::plan_checkpoint_interval {

using namespace frugal::plan;
using doctest::Approx;

constexpr double hour = 3600, day = 24 * hour;

/// Time of one run with failures drawn at random.
double simulated(double work, double interval, double cost, Failures const& failures,
                 std::mt19937_64& random) {
  std::exponential_distribution<double> lifetime(1 / failures.lifetime);
  double time = 0;
  double left = lifetime(random);
  auto const survives = [&](double span) {
    if (span <= left) {
      time += span;
      left -= span;
      return true;
    }
    time += left;
    left = lifetime(random);
    return false;
  };
  for (double done = 0; done < work;) {
    if (survives(interval + cost)) {
      done += interval;
      continue;
    }
    while (!survives(failures.restart)) {
    }
  }
  return time;
}

TEST_CASE("Young's interval, by hand: a minute's checkpoint and a day's machine, each 54 minutes") {
  CHECK(young_interval(60, day) == Approx(std::sqrt(2 * 60 * 86400.0)));
  CHECK(young_interval(60, day) / 60 == Approx(53.67).epsilon(1e-3));
  CHECK(young_interval(0, day) == 0);
}

TEST_CASE("Daly's interval is Young's less the cost, where the cost is small") {
  CHECK(daly_interval(1, day) == Approx(young_interval(1, day) - 1).epsilon(0.002));
  CHECK(daly_interval(100, 50) == 50);
}

TEST_CASE("Daly's interval is where the expected time is least, within a thousandth") {
  for (double const lifetime : {hour, day}) {
    for (double const cost : {1.0, 60.0, 300.0}) {
      Failures const failures{.lifetime = lifetime, .restart = 120};
      double const best = expected_time(day, daly_interval(cost, lifetime), cost, failures);
      for (double const factor : {0.5, 0.8, 0.9, 1.1, 1.25, 2.0}) {
        double const other =
            expected_time(day, daly_interval(cost, lifetime) * factor, cost, failures);
        CHECK(other > best * 0.999);
      }
    }
  }
}

TEST_CASE("the expected time is the mean of simulated runs") {
  std::mt19937_64 random(7);
  Failures const failures{.lifetime = 2 * hour, .restart = 300};
  double sum = 0;
  constexpr int runs = 20000;
  for (int i = 0; i < runs; ++i) sum += simulated(10 * hour, 0.5 * hour, 60, failures, random);
  CHECK(sum / runs == Approx(expected_time(10 * hour, 0.5 * hour, 60, failures)).epsilon(0.01));
}

TEST_CASE("a machine that never vanishes costs its checkpoints alone, and is the limit") {
  CHECK(expected_time(10 * hour, hour, 36, {}) == 10 * (hour + 36));
  CHECK(expected_time(10 * hour, hour, 36, {.lifetime = 1e9 * day, .restart = 600}) ==
        Approx(10 * (hour + 36)));
  CHECK(expected_time(10 * hour, hour, 36, {.lifetime = day, .restart = 600}) > 10 * (hour + 36));
}

}  // namespace frugal_test::plan_checkpoint_interval
