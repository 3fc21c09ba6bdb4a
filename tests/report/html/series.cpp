// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/series.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace frugal_test::html_series {

using frugal::html::Point;
using frugal::html::Series;

Point at(double step, double value) { return {.step = step, .seconds = step / 10, .value = value}; }

TEST_CASE("a short series keeps every point in its order") {
  Series series;
  for (int i = 0; i < 300; ++i) series.add(at(i, i % 7));
  auto const points = series.points();
  REQUIRE(points.size() == 300);
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(points[i].step == static_cast<double>(i));
    CHECK(points[i].value == static_cast<double>(i % 7));
  }
}

TEST_CASE("a long series keeps its ends and every spike, and does not grow") {
  Series series;
  constexpr int n = 1'000'000;
  // A wave with one spike up and one down, each a single point.
  auto const value = [](int i) {
    if (i == 123'457) return 50.0;
    if (i == 765'433) return -50.0;
    return std::sin(i * 1e-4);
  };
  for (int i = 0; i < n; ++i) series.add(at(i, value(i)));
  auto const points = series.points();
  CHECK(points.size() <= 4 * Series::most_columns);
  CHECK(points.size() >= Series::most_columns);
  CHECK(series.count() == n);
  CHECK(points.front().step == 0);
  CHECK(points.back().step == n - 1);
  CHECK(series.last().step == n - 1);
  CHECK(series.highest().step == 123'457);
  CHECK(series.lowest().step == 765'433);
  CHECK(std::is_sorted(points.begin(), points.end(),
                       [](Point const& a, Point const& b) { return a.step < b.step; }));
}

TEST_CASE("each column has the first, lowest, highest and last of its points, as M4 says") {
  // Against a plain computation over all points, with the width that the series must have by then.
  for (int const n : {319, 320, 321, 640, 1000, 5000}) {
    Series series;
    std::vector<Point> all;
    std::uint64_t state = 1;
    for (int i = 0; i < n; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      all.push_back(at(i, static_cast<double>(state >> 40U)));
      series.add(all.back());
    }
    std::size_t width = 1;
    while (static_cast<std::size_t>(n) >= Series::most_columns * width) width *= 2;
    std::vector<double> expected;
    for (std::size_t begin = 0; begin < all.size(); begin += width) {
      std::size_t const end = std::min(begin + width, all.size());
      std::size_t low = begin, high = begin;
      for (std::size_t i = begin; i < end; ++i) {
        if (all[i].value < all[low].value) low = i;
        if (all[i].value > all[high].value) high = i;
      }
      std::vector<std::size_t> four{begin, low, high, end - 1};
      std::sort(four.begin(), four.end());
      four.erase(std::unique(four.begin(), four.end()), four.end());
      for (std::size_t const i : four) expected.push_back(all[i].step);
    }
    std::vector<double> got;
    for (Point const& point : series.points()) got.push_back(point.step);
    CHECK(got == expected);
  }
}

TEST_CASE("values that are no finite number are counted and left out") {
  Series series;
  for (double const value : {1.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(), -1e300, 2.0}) {
    series.add(at(1, value));
  }
  CHECK(series.count() == 2);
  CHECK(series.not_finite() == 3);
  CHECK(series.points().size() == 2);
  CHECK(Series{}.points().empty());
  CHECK(Series{}.last().value == 0);
}

}  // namespace frugal_test::html_series
