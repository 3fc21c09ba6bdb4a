// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/name.hpp>

namespace frugal_test::metrics_name {

TEST_CASE("names are put together while compiling") {
  static_assert(frugal::detail::metric_name_of<"f1", "_macro"> == "f1_macro");
  static_assert(frugal::detail::metric_name_of<"f1", ""> == "f1");
  static_assert(frugal::detail::numbered_metric_name<"top", 5> == "top5");
  static_assert(frugal::detail::numbered_metric_name<"top", 1000> == "top1000");
  CHECK(frugal::detail::numbered_metric_name<"top", 10> == "top10");
}

}  // namespace frugal_test::metrics_name
