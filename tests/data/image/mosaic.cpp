// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/mosaic.hpp>
#include <frugal/error.hpp>

#include <vector>

namespace frugal_test::image_mosaic {

using namespace frugal_test::image;
using frugal::Batch;
using frugal::Mosaic;

TEST_CASE("four images touch a point with their corners, and fill the image") {
  std::int64_t const height = 12, width = 20;
  at::Tensor const all = images({6, 3, height, width}, 3, true);
  auto const keys = keys_of(6);
  Mosaic const mosaic;
  auto const patches = mosaic.patches(keys, height, width);
  REQUIRE(patches.size() == 24);
  at::Tensor const out = mosaic(all, keys);
  CHECK(out.sizes() == all.sizes());
  for (std::int64_t b = 0; b < 6; ++b) {
    auto const first = patches[static_cast<std::size_t>(4 * b)];
    std::int64_t const y = first.box.height, x = first.box.width;
    CHECK((first.from == b && y >= 3 && y <= 9 && x >= 5 && x <= 15));
    // The corner of each image that touches the point: its last or first row and column.
    auto const at = [&](std::size_t i) {
      return all[patches[static_cast<std::size_t>(4 * b) + i].from];
    };
    CHECK(at::equal(out[b].narrow(1, 0, y).narrow(2, 0, x),
                    at(0).narrow(1, height - y, y).narrow(2, width - x, x)));
    CHECK(at::equal(out[b].narrow(1, 0, y).narrow(2, x, width - x),
                    at(1).narrow(1, height - y, y).narrow(2, 0, width - x)));
    CHECK(at::equal(out[b].narrow(1, y, height - y).narrow(2, 0, x),
                    at(2).narrow(1, 0, height - y).narrow(2, width - x, x)));
    CHECK(at::equal(out[b].narrow(1, y, height - y).narrow(2, x, width - x),
                    at(3).narrow(1, 0, height - y).narrow(2, 0, width - x)));
  }
}

TEST_CASE("targets are mixed by area") {
  Batch const batch{images({4, 1, 10, 10}, 3, false), at::tensor({0, 1, 2, 3}, at::kLong)};
  auto const keys = keys_of(4, 3);
  Mosaic const mosaic{.classes = 4};
  Batch const out = mosaic(batch, keys);
  CHECK(at::equal(out.data, mosaic(batch.data, keys)));
  at::Tensor expected = at::zeros({4, 4});
  for (auto const& each : mosaic.patches(keys, 10, 10)) {  // label i is image i's
    expected[each.to][each.from] += static_cast<double>(each.box.height * each.box.width) / 100;
  }
  CHECK(at::allclose(out.target, expected));
  CHECK(at::allclose(out.target.sum(1), at::ones({4})));
}

TEST_CASE("a margin of a half is the middle, and more is refused") {
  auto const patches = Mosaic{.margin = 0.5}.patches(keys_of(3), 8, 8);
  for (auto const& each : patches) CHECK((each.box.height == 4 && each.box.width == 4));
  CHECK_THROWS_AS(Mosaic{.margin = 0.6}.patches(keys_of(3), 8, 8), frugal::SettingsError);
  Batch const batch{images({2, 1, 4, 4}, 3, false), at::zeros({2}, at::kLong)};
  CHECK_THROWS_AS(Mosaic{}(batch, keys_of(2)), frugal::SettingsError);
}

}  // namespace frugal_test::image_mosaic
