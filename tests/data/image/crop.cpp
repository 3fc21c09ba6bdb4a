// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/crop.hpp>
#include <frugal/error.hpp>

#include <set>
#include <vector>

namespace frugal_test::image_crop {

using namespace frugal_test::image;
using frugal::RandomCrop;

TEST_CASE("the middle of images is that of torchvision, with a border for small ones") {
  compare("centre_crop", [](at::Tensor const& images, Json const& how) {
    return frugal::CentreCrop{.height = how.at("height"), .width = how.at("width")}(images);
  });
}

TEST_CASE("a random crop is the drawn box of each image") {
  at::Tensor const all = images({5, 3, 12, 14}, 1, true);
  auto const keys = keys_of(5);
  RandomCrop const crop{.height = 7, .width = 6};
  at::Tensor const out = crop(all, keys);
  CHECK(out.sizes() == at::IntArrayRef({5, 3, 7, 6}));
  for (std::int64_t b = 0; b < 5; ++b) {
    auto const box = crop.box(keys[static_cast<std::size_t>(b)], 12, 14);
    CHECK(at::equal(out[b], all[b].narrow(1, box.top, 7).narrow(2, box.left, 6)));
  }
}

TEST_CASE("a padded crop reaches every place, the border included") {
  at::Tensor const all = images({2, 1, 8, 8}, 2, false);
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  RandomCrop const crop{.height = 8, .width = 8, .padding = 1};
  for (auto const& key : keys_of(300)) {
    auto const box = crop.box(key, 10, 10);
    places.emplace(box.top, box.left);
  }
  CHECK(places.size() == 9);
  at::Tensor const padded = at::constant_pad_nd(all, {1, 1, 1, 1}, 0);
  auto const keys = keys_of(2, 40);
  auto const box = crop.box(keys[1], 10, 10);
  CHECK(at::equal(crop(all, keys)[1], padded[1].narrow(1, box.top, 8).narrow(2, box.left, 8)));
}

TEST_CASE("an image's crop does not depend on its batch") {
  at::Tensor const all = images({6, 3, 12, 12}, 3, true);
  auto const keys = keys_of(6);
  RandomCrop const crop{.height = 5, .width = 5};
  at::Tensor const whole = crop(all, keys);
  at::Tensor const part = crop(all.narrow(0, 2, 3), std::span(keys).subspan(2, 3));
  CHECK(at::equal(whole.narrow(0, 2, 3), part));
  CHECK_FALSE(at::equal(crop(all, keys_of(6, 0, 1)), whole));
}

TEST_CASE("images that are smaller than the crop are refused, with both sizes") {
  try {
    static_cast<void>(
        RandomCrop{.height = 9, .width = 4}(images({2, 3, 8, 8}, 1, true), keys_of(2)));
    FAIL("nothing was thrown");
  } catch (frugal::ShapeError const& error) {
    CHECK(error.fault().why ==
          "they are [2, 3, 8, 8] Byte with a border of 0, and the crop is 9 x 4");
  }
}

TEST_CASE("boxes that do not fit their images are refused") {
  at::Tensor const all = images({2, 3, 8, 8}, 1, true);
  using frugal::Box;
  using Boxes = std::vector<Box>;
  Box const box{.top = 1, .left = 2, .height = 7, .width = 6};
  CHECK(at::equal(frugal::crop(all, Boxes{box, box}), all.narrow(2, 1, 7).narrow(3, 2, 6)));
  Box const low{.top = 2, .left = 2, .height = 7, .width = 6};
  Box const narrow{.top = 1, .left = 2, .height = 7, .width = 5};
  Box const outside{.top = 1, .left = -1, .height = 7, .width = 6};
  for (Boxes const& boxes : {Boxes{}, Boxes{box}, Boxes{box, box, box}, Boxes{box, low},
                             Boxes{box, narrow}, Boxes{outside, box}}) {
    CHECK_THROWS_AS(static_cast<void>(frugal::crop(all, boxes)), frugal::ShapeError);
  }
}

}  // namespace frugal_test::image_crop
