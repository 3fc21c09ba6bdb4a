// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/image/region.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::data_image_region {

using frugal::detail::counted_runs;
using frugal::detail::decoded_counts;
using frugal::detail::paint;
using frugal::detail::PixelRun;
using frugal::detail::polygon_runs;

// Polygons and texts are compared with pycocotools in coco_file.cpp.

TEST_CASE("lengths are alternately without and within") {
  std::vector<std::uint32_t> const counts{2, 3, 0, 4, 1, 0, 2};
  CHECK(counted_runs(counts) == std::vector<PixelRun>{{2, 5}, {5, 9}});
}

TEST_CASE("a text of counts has six bits to a character, and differences from the fourth on") {
  using Counts = std::vector<std::uint32_t>;
  CHECK(decoded_counts("") == Counts{});
  CHECK(decoded_counts("03") == Counts{0, 3});
  // 40 = 8 + 32 * 1; the fourth is 2 more than the second: 5.
  CHECK(decoded_counts("03X12") == Counts{0, 3, 40, 5});
}

TEST_CASE("what is no text of counts is refused") {
  for (std::string const text : {"/", "p", "0 ", "P", "oooooooo0", "00O"}) {
    CAPTURE(text);
    CHECK(decoded_counts(text) == std::nullopt);
  }
  CHECK(decoded_counts(std::string(1, '\0')) == std::nullopt);
  CHECK(decoded_counts("0000O") == std::nullopt);  // 0, 0, 0, 0, and 0 - 1
}

TEST_CASE("pixels are numbered column by column, and two classes at one pixel are none") {
  std::vector<std::int64_t> mask(6);  // 2 rows, 3 columns
  paint(std::vector<PixelRun>{{1, 4}}, 5, -100, 2, 3, mask);
  CHECK(mask == std::vector<std::int64_t>{0, 5, 0, 5, 5, 0});
  paint(std::vector<PixelRun>{{0, 3}}, 5, -100, 2, 3, mask);
  CHECK(mask == std::vector<std::int64_t>{5, 5, 0, 5, 5, 0});
  paint(std::vector<PixelRun>{{3, 6}}, 2, -100, 2, 3, mask);
  CHECK(mask == std::vector<std::int64_t>{5, 5, 2, 5, -100, 2});
}

TEST_CASE("runs of a polygon lie within the image") {
  std::vector<double> const triangle{-8, -3, 14, 5, 2, 17};
  for (auto const& run : polygon_runs(triangle, 8, 6)) {
    CHECK(run.begin < run.end);
    CHECK(run.end <= 48);
  }
}

}  // namespace frugal_test::data_image_region
