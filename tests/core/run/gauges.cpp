// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/run/gauges.hpp>

namespace frugal_test::run_gauges {

TEST_CASE("A gauge keeps its last value and its place") {
  frugal::Gauges gauges;
  CHECK(gauges.items().empty());
  gauges.set("dollars", 1);
  gauges.set("memory_bytes", 2);
  gauges.set("dollars", 3);
  REQUIRE(gauges.items().size() == 2);
  CHECK(gauges.items()[0] == frugal::Gauges::Item("dollars", 3));
  CHECK(gauges.items()[1].first == "memory_bytes");
  CHECK(gauges.find("dollars") == 3);
  CHECK_FALSE(gauges.find("hours"));
}

}  // namespace frugal_test::run_gauges
