// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/profile/memory_line.hpp>

namespace frugal_test::watch_profile_memory_line {

using namespace frugal::watch;

TEST_CASE("the line is the running sum in the order of time, and its peak has a moment") {
  Trace const trace{.span = {1'000'000'000, 3'000'000'000},
                    .memory = {{2'000'000'000, -60}, {1'000'000'000, 100}, {1'500'000'000, 50}}};
  auto const line = memory_line(trace);
  REQUIRE(line.size() == 3);
  CHECK(line[0].bytes == 100);
  CHECK(line[1].bytes == 150);
  CHECK(line[2].bytes == 90);
  CHECK(line[2].seconds == doctest::Approx(1.0));
  CHECK(peak_of(line).bytes == 150);
  CHECK(peak_of(line).seconds == doctest::Approx(0.5));
  CHECK(peak_of({}).bytes == 0);
}

TEST_CASE("a thinned line keeps the peak, whatever the number of points") {
  std::vector<MemoryPoint> line(1000);
  for (std::size_t i = 0; i < line.size(); ++i) {
    line[i] = {static_cast<double>(i), i == 777 ? 5000 : static_cast<std::int64_t>(i % 7)};
  }
  for (std::size_t const most : {1U, 2U, 3U, 7U, 200U, 999U, 1000U, 2000U}) {
    auto const few = thinned(line, most);
    CHECK(few.size() == std::min<std::size_t>(most, 1000));
    CHECK(peak_of(few).bytes == 5000);
    CHECK(peak_of(few).seconds == 777);
  }
}

}  // namespace frugal_test::watch_profile_memory_line
