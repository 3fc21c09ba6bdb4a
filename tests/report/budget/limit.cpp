// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/budget/limit.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace frugal_test::policy_budget_levels {

using frugal::detail::Levels;

Levels three(double hysteresis = 0.05) { return {{1.0, 0.5, 0.8}, hysteresis, "Budget"}; }

/// An archive of numbers, in the order of writing.
struct Memory {
  static constexpr bool loading = false;
  void operator()(std::string const&, double& value) { saved = value; }
  double saved = 0;
};
struct Recall {
  static constexpr bool loading = true;
  void operator()(std::string const&, double& value) const { value = saved; }
  double saved = 0;
};

TEST_CASE("each level is told once, and exactly at its share") {
  Levels levels = three();
  CHECK_FALSE(levels.look(0.4999));
  CHECK(levels.look(0.5) == 0.5);
  CHECK_FALSE(levels.look(0.6));
  CHECK(levels.look(0.8) == 0.8);
  CHECK(levels.look(1.2) == 1.0);
  CHECK_FALSE(levels.look(7));
}

TEST_CASE("of several levels that are passed at once, only the highest is told") {
  CHECK(three().look(3) == 1.0);
  CHECK(three().look(0.9) == 0.8);
}

TEST_CASE("a level is told again only after the share has left it by the hysteresis") {
  Levels levels = three();
  CHECK(levels.look(0.8) == 0.8);
  CHECK_FALSE(levels.look(0.7501));
  CHECK_FALSE(levels.look(0.8));
  CHECK_FALSE(levels.look(0.7));
  CHECK(levels.look(0.81) == 0.8);
  CHECK_FALSE(levels.look(0.1));  // a larger limit: all are armed again
  CHECK(levels.look(0.5) == 0.5);
}

TEST_CASE("a share that is no number tells nothing") {
  Levels levels = three();
  CHECK_FALSE(levels.look(std::numeric_limits<double>::quiet_NaN()));
  CHECK(levels.look(0.5) == 0.5);
}

TEST_CASE("what was told is kept, also if the levels are others after a resume") {
  Levels before = three();
  CHECK(before.look(0.85) == 0.8);
  Memory memory;
  before.persist(memory);
  Recall recall{memory.saved};
  Levels after = three();
  after.persist(recall);
  CHECK_FALSE(after.look(0.85));
  CHECK(after.look(1) == 1.0);
  Levels other({0.6, 0.9}, 0.05, "Budget");
  other.persist(recall);
  CHECK_FALSE(other.look(0.85));
  CHECK(other.look(0.9) == 0.9);
}

TEST_CASE("whatever the shares, a told level was reached, and armed since it was told last") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0, 1.3);
  for (int trial = 0; trial < 500; ++trial) {
    double const hysteresis = any(random) / 4;
    std::vector<double> const set{any(random) + 0.01, any(random) + 0.01, any(random) + 0.01};
    Levels levels(set, hysteresis, "Budget");
    std::vector<bool> armed(set.size(), true);
    for (int i = 0; i < 200; ++i) {
      double const share = any(random);
      for (std::size_t k = 0; k < set.size(); ++k) {
        if (share < set[k] - hysteresis) armed[k] = true;
      }
      // The highest of all that are reached, if it is armed and none above it still holds.
      std::optional<double> const told = levels.look(share);
      bool any_armed = false;
      for (std::size_t k = 0; k < set.size(); ++k) {
        if (told && set[k] == *told) {
          CHECK(share >= set[k]);
          CHECK(armed[k]);
        }
        if (told && set[k] <= *told) armed[k] = false;
        if (set[k] <= share) any_armed = any_armed || armed[k];
      }
      if (told) CHECK_FALSE(any_armed);
    }
  }
}

TEST_CASE("a share that only grows tells every level at most once, in their order") {
  std::mt19937 random(8);
  std::uniform_real_distribution<double> step(0, 0.03);
  for (int trial = 0; trial < 200; ++trial) {
    Levels levels = three(step(random));
    std::vector<double> told;
    for (double share = 0; share < 1.2; share += step(random)) {
      if (auto const level = levels.look(share)) told.push_back(*level);
    }
    CHECK(told == std::vector<double>{0.5, 0.8, 1.0});
  }
}

TEST_CASE("levels and a hysteresis that cannot be meant are refused") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  for (double const level : {0.0, -0.5, nan, std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(Levels({level}, 0.05, "Budget"), frugal::SettingsError);
  }
  for (double const hysteresis : {-0.1, 1.0, nan}) {
    CHECK_THROWS_AS(Levels({0.5}, hysteresis, "Budget"), frugal::SettingsError);
  }
}

}  // namespace frugal_test::policy_budget_levels

namespace frugal_test::budget_limit {

using frugal::detail::amount_text;

TEST_CASE("amounts have four digits below 1000, all before the point, and no exponent") {
  CHECK(amount_text(16.5, "USD") == "16.5 USD");
  CHECK(amount_text(20, "USD") == "20 USD");
  CHECK(amount_text(1.23456, "h") == "1.235 h");
  CHECK(amount_text(20000, "USD") == "20000 USD");
  CHECK(amount_text(123456.7, "USD") == "123457 USD");
  CHECK(amount_text(0.00002, "USD") == "0.00002 USD");
  CHECK(amount_text(0, "kWh") == "0 kWh");
  CHECK(amount_text(1e300, "USD").find('e') == std::string::npos);
}

}  // namespace frugal_test::budget_limit

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
