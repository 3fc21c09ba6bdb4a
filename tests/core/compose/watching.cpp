// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/recipe.hpp>
#include <frugal/core/compose/watching.hpp>

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

FRUGAL_DIAGNOSTIC(unmeasured, "frugal: not measured.");
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
  using properties = list<frugal::property::adds_no_metrics>;
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

/// May add metrics, so that nothing is known of what is measured.
struct AddsMetrics {
  using kind = gamma;
  using listens = list<frugal::around::validate>;
};

TEST_CASE("a watched name has its source before the last slash, or none") {
  using frugal::detail::source_of;
  CHECK(source_of("accuracy").empty());
  CHECK(source_of("shifted/accuracy") == "shifted");
  CHECK(source_of("a/b/accuracy") == "a/b");
}

TEST_CASE("watched metrics are compared with the sources that fit gets") {
  using Plain = frugal::detail::Watching<Watches<WatchesRight>>;
  using Named = frugal::detail::Watching<Watches<WatchesRightElsewhere, WatchesLoss>>;
  using Unknown = frugal::detail::Watching<Watches<WatchesRightElsewhere>, AddsMetrics>;
  using std::string_view;
  CHECK(Plain::is_of_sources(string_view()));
  CHECK_FALSE(Plain::is_of_sources(string_view("elsewhere")));
  CHECK(Named::is_of_sources(string_view(), string_view("elsewhere")));
  CHECK_FALSE(Named::is_of_sources(string_view("elsewhere")));
  CHECK_FALSE(Named::is_of_sources(string_view(), string_view("here")));
  CHECK(Unknown::is_of_sources(string_view()));
}

}  // namespace frugal_test::compose_watching
