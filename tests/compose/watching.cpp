// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/compose/recipe.hpp>
#include <frugal/compose/watching.hpp>

#include <map>
#include <string>
#include <string_view>

#include "stand_ins.hpp"

namespace frugal_test::compose_watching {

using frugal::list;
using frugal::Recipe;
using frugal::detail::metric_of;
using frugal_test::compose::alpha;
using frugal_test::compose::beta;
using frugal_test::compose::gamma;

struct WatchesLoss {
  static constexpr std::string_view name = "loss";
};
struct WatchesRight {
  static constexpr std::string_view name = "right";
};
struct WatchesRightElsewhere {
  static constexpr std::string_view name = "elsewhere/right";
};

FRUGAL_SENTENCE(unmeasured, "frugal: not measured.");
template <class... Ws>
struct Watches {
  using kind = alpha;
  using listens = list<>;
  using watches = list<frugal::watched<Ws, unmeasured>...>;
};
template <class... Ms>
struct Measures {
  using kind = beta;
  using listens = list<>;
  using metrics = list<Ms...>;
};

struct Right {
  static constexpr std::string_view name = "right";
  double result() const { return 0; }
};
struct Wrong {
  static constexpr std::string_view name = "wrong";
  double result() const { return 0; }
};
/// Gives several values, whose names are known only in a validation.
struct Table {
  static constexpr std::string_view name = "table";
  std::map<std::string, double> result() const { return {}; }
};

struct Adds {
  using kind = gamma;
  using listens = list<frugal::around::validate>;
};
struct AddsNone : Adds {
  static constexpr bool adds_metrics = false;
};

TEST_CASE("the loss is always measured") {
  CHECK(Recipe<Watches<WatchesLoss>>::legal);
  CHECK(Recipe<Watches<>>::legal);
}

TEST_CASE("a watched metric must be measured by a policy of the recipe") {
  CHECK(Recipe<Watches<WatchesRight>, Measures<Wrong, Right>>::legal);
  CHECK(Recipe<Watches<WatchesRight>, Measures<Wrong>>::fault == unmeasured::text);
  CHECK(Recipe<Watches<WatchesLoss, WatchesRight>>::fault == unmeasured::text);
}

TEST_CASE("a metric on a named source is identified by its own name") {
  CHECK(metric_of("right") == "right");
  CHECK(metric_of("elsewhere/right") == "right");
  CHECK(Recipe<Watches<WatchesRightElsewhere>, Measures<Right>>::legal);
  CHECK_FALSE(Recipe<Watches<WatchesRightElsewhere>, Measures<Wrong>>::legal);
}

TEST_CASE("a policy whose metric names are unknown to types may measure anything") {
  CHECK(Recipe<Watches<WatchesRight>, Measures<Table>>::legal);
  CHECK(Recipe<Watches<WatchesRight>, Adds>::legal);
  CHECK_FALSE(Recipe<Watches<WatchesRight>, AddsNone>::legal);
}

}  // namespace frugal_test::compose_watching
