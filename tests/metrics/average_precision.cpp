// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/metrics/average_precision.hpp>

namespace frugal_test::metrics_average_precision {

using frugal::detail::AveragePrecision;
using frugal::detail::BoxCorners;

constexpr BoxCorners unit{0, 0, 10, 10};

TEST_CASE("one box that is right is 1, and one that is wrong before it halves the precision") {
  AveragePrecision one;
  one.expect(0, 4, unit, false);
  one.predict(0, 4, unit, 0.5);
  REQUIRE(one.classes().size() == 1);
  CHECK(one.classes()[0].label == 4);
  CHECK(one.classes()[0].all == doctest::Approx(1).epsilon(1e-12));
  CHECK(one.classes()[0].recall == doctest::Approx(1).epsilon(1e-12));
  one.predict(1, 4, unit, 0.75);
  CHECK(one.classes()[0].all == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("of equal scores the box that was added first, in the first image, ranks first") {
  AveragePrecision first, last;
  first.expect(0, 0, unit, false);
  last.expect(1, 0, unit, false);
  for (AveragePrecision* each : {&first, &last}) {
    each->predict(0, 0, unit, 0.5);
    each->predict(1, 0, unit, 0.5);
  }
  CHECK(first.classes()[0].all == doctest::Approx(1).epsilon(1e-12));
  CHECK(last.classes()[0].all == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("an overlap of exactly the threshold matches, and a second box on one target is wrong") {
  AveragePrecision half;
  half.expect(0, 0, unit, false);
  half.predict(0, 0, {0, 0, 10, 5}, 0.5);
  CHECK(half.classes()[0].at_50 == doctest::Approx(1).epsilon(1e-12));
  CHECK(half.classes()[0].all == doctest::Approx(0.1).epsilon(1e-12));
  half.predict(0, 0, unit, 0.75);
  CHECK(half.classes()[0].all == doctest::Approx(1).epsilon(1e-12));
  half.predict(0, 0, unit, 1);
  CHECK(half.classes()[0].recall == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("a crowd is no target, and what lies in it is neither right nor wrong") {
  AveragePrecision found;
  found.expect(0, 0, unit, true);
  CHECK(found.classes().empty());
  found.expect(0, 0, {100, 100, 110, 110}, false);
  found.predict(0, 0, {1, 1, 4, 4}, 0.75);
  found.predict(0, 0, {5, 5, 9, 9}, 0.75);
  found.predict(0, 0, {100, 100, 110, 110}, 0.5);
  CHECK(found.classes()[0].all == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("boxes without an area and inverted boxes overlap nothing") {
  AveragePrecision found;
  found.expect(0, 0, unit, false);
  found.predict(0, 0, {10, 10, 0, 0}, 1);
  found.predict(0, 0, {5, 5, 5, 5}, 1);
  CHECK(found.classes()[0].recall == 0);
}

}  // namespace frugal_test::metrics_average_precision
