// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/image/transform_text.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace frugal_test::image_transform_text {

using frugal::detail::image_transform_text;

TEST_CASE("name, version and settings are in the text") {
  CHECK(image_transform_text("Crop", 2, std::int64_t{8}, true, 0.5) == "Crop/2(8,1,0.5,)");
  CHECK(image_transform_text("Mean", 1, std::vector{1.0, 2.5}, std::array{3.0}) ==
        "Mean/1([1,2.5,],[3,],)");
}

TEST_CASE("numbers that differ in their last bit differ in the text") {
  CHECK(image_transform_text("x", 1, 0.1) != image_transform_text("x", 1, std::nextafter(0.1, 1)));
  CHECK(image_transform_text("x", 1, ~std::uint64_t{0}) !=
        image_transform_text("x", 1, ~std::uint64_t{0} - 1));
}

TEST_CASE("lists of numbers do not run into each other") {
  using Numbers = std::vector<double>;
  CHECK(image_transform_text("x", 1, Numbers{1, 2}, Numbers{3}) !=
        image_transform_text("x", 1, Numbers{1}, Numbers{2, 3}));
}

}  // namespace frugal_test::image_transform_text
