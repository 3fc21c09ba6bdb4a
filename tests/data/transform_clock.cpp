// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/transform_clock.hpp>

#include <doctest/doctest.h>

namespace frugal_test::data_transform_clock {

TEST_CASE("only transforms that are measured add up time, and nested ones count once") {
  frugal::detail::TransformClock clock;
  {
    frugal::detail::TransformSpan const unmeasured;
    CHECK_FALSE(clock.runs);
  }
  {
    frugal::detail::MeasuredTransforms const measured(clock);
    frugal::detail::TransformSpan const outer;
    CHECK(clock.runs);
    {
      frugal::detail::TransformSpan const inner;
    }
    CHECK(clock.runs);          // the inner one has not ended the outer
    CHECK(clock.seconds == 0);  // and has added nothing
  }
  CHECK_FALSE(clock.runs);
  CHECK(frugal::detail::transform_clock == nullptr);
}

}  // namespace frugal_test::data_transform_clock
