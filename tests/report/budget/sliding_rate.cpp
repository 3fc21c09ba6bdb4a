// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/budget/sliding_rate.hpp>

#include <random>

namespace frugal_test::report_budget_sliding_rate {

using frugal::detail::SlidingRate;

TEST_CASE("the rate is the mean over the window, and nothing before the window is full") {
  SlidingRate rate(1.0);
  for (int i = 0; i < 10; ++i) CHECK_FALSE(rate.look(0.1 * i, 0.2 * i));
  CHECK(rate.look(1.0, 2.0).value_or(0) == doctest::Approx(2));
  // The amount stands still: within a window the rate falls to 0.
  double last = 2;
  for (int i = 1; i <= 11; ++i) {
    double const found = rate.look(1.0 + 0.1 * i, 2.0).value_or(-1);
    CHECK(found <= last);
    last = found;
  }
  CHECK(last == doctest::Approx(0));
}

TEST_CASE("at any steps a constant rate is found, and one that changes lies between its values") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> step(1e-4, 0.3);
  for (int trial = 0; trial < 100; ++trial) {
    SlidingRate constant(0.5), changes(0.5);
    double const scale = step(random);
    double hours = 0, amount = 0;
    for (int i = 0; i < 300; ++i) {
      double const more = scale * step(random);
      hours += more;
      amount += more * (i % 50 < 25 ? 1 : 4);
      if (auto const found = constant.look(hours, 3 * hours)) CHECK(*found == doctest::Approx(3));
      if (auto const found = changes.look(hours, amount)) {
        CHECK(*found >= 1 - 1e-9);
        CHECK(*found <= 4 + 1e-9);
      }
    }
  }
}

}  // namespace frugal_test::report_budget_sliding_rate
