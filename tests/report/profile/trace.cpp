// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/profile/trace.hpp>

#include <cstdint>
#include <random>
#include <vector>

namespace frugal_test::watch_profile_spans {

using namespace frugal::watch;

TEST_CASE("overlapping and touching spans become one, empty and reversed ones none") {
  CHECK(merged({{5, 8}, {1, 3}, {2, 4}, {8, 9}, {6, 6}, {30, 20}}) == Spans{{1, 4}, {5, 9}});
  CHECK(merged({}).empty());
  CHECK(total({{1, 4}, {5, 9}}) == 7);
}

TEST_CASE("union, intersection and difference agree with sets of single nanoseconds") {
  std::mt19937 random(7);
  auto const draw = [&] {
    Spans spans;
    for (std::uint32_t count = random() % 8; count > 0; --count) {
      std::uint64_t const begin = random() % 40;
      spans.push_back({begin, begin + random() % 10});
    }
    return spans;
  };
  auto const moments = [](Spans const& spans) {
    std::vector<bool> in(64, false);
    for (Span const& each : spans) {
      for (std::uint64_t at = each.begin; at < each.end; ++at) in[at] = true;
    }
    return in;
  };
  for (int trial = 0; trial < 500; ++trial) {
    Spans const raw_a = draw();
    Spans const raw_b = draw();
    Spans const a = merged(raw_a);
    Spans const b = merged(raw_b);
    auto const in_a = moments(raw_a);
    auto const in_b = moments(raw_b);
    CHECK(moments(a) == in_a);
    auto const both = moments(common(a, b));
    auto const only_a = moments(without(a, b));
    std::uint64_t count = 0;
    for (std::size_t at = 0; at < in_a.size(); ++at) {
      CHECK(both[at] == (in_a[at] && in_b[at]));
      CHECK(only_a[at] == (in_a[at] && !in_b[at]));
      CHECK(holds(a, at) == in_a[at]);
      if (in_a[at]) ++count;
    }
    CHECK(total(a) == count);
  }
}

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

}  // namespace frugal_test::watch_profile_spans
