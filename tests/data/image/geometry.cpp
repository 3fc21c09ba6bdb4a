// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/image/geometry.hpp>

#include "references.hpp"

#include <doctest/doctest.h>

#include <frugal/error.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace frugal_test::data_image_geometry {

using namespace frugal_test::image;
using frugal::Box;
using frugal::Interpolation;
using frugal::RandomCrop;
using frugal::RandomFlip;
using frugal::RandomResizedCrop;
using frugal::resize;

TEST_CASE("certain flips are those of torchvision") {
  compare("horizontal_flip", [](at::Tensor const& images, Json const&) {
    return RandomFlip{.probability = 1}(images, keys_of(2));
  });
  compare("vertical_flip", [](at::Tensor const& images, Json const&) {
    return RandomFlip{.probability = 1, .vertical = true}(images, keys_of(2));
  });
}

TEST_CASE("each image is flipped by its own key, whatever its batch") {
  at::Tensor const all = images({16, 3, 5, 6}, 1, true);
  auto const keys = keys_of(16);
  RandomFlip const flip;
  at::Tensor const out = flip(all, keys);
  int flipped = 0;
  for (std::int64_t b = 0; b < 16; ++b) {
    bool const mirrored = flip.flips(keys[static_cast<std::size_t>(b)]);
    flipped += mirrored;
    CHECK(at::equal(out[b], mirrored ? all[b].flip(-1) : all[b]));
  }
  CHECK((flipped > 0 && flipped < 16));
  CHECK(at::equal(flip(all.narrow(0, 5, 4), std::span(keys).subspan(5, 4)), out.narrow(0, 5, 4)));
}

TEST_CASE("as many images are flipped as the probability says") {
  RandomFlip const rare{.probability = 0.1};
  int flipped = 0;
  for (auto const& key : keys_of(10'000)) flipped += rare.flips(key);
  CHECK(std::abs(flipped - 1'000) < 150);  // five standard deviations
}

TEST_CASE("no flip is no copy, and the images are never changed") {
  at::Tensor const all = images({4, 3, 5, 6}, 1, true);
  CHECK(RandomFlip{.probability = 0}(all, keys_of(4)).is_same(all));
  at::Tensor const before = all.clone();
  static_cast<void>(RandomFlip{}(all, keys_of(4)));
  CHECK(at::equal(all, before));
}

TEST_CASE("without a key for each image there is nothing to draw from") {
  CHECK_THROWS_AS(RandomFlip{}(images({4, 3, 5, 6}, 1, true), keys_of(3)), frugal::ShapeError);
  CHECK_THROWS_AS(RandomFlip{}(images({3, 5, 6}, 1, true), keys_of(3)), frugal::ShapeError);
}

TEST_CASE("the middle of images is that of torchvision, with a border for small ones") {
  compare("center_crop", [](at::Tensor const& images, Json const& how) {
    return frugal::CenterCrop{.height = how.at("height"), .width = how.at("width")}(images);
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

TEST_CASE("images are resized as torchvision resizes them") {
  compare(
      "resize",
      [](at::Tensor const& images, Json const& how) {
        auto const mode = how.at("mode").get<std::string>();
        return resize(images, how.at("height"), how.at("width"),
                      {.interpolation = mode == "bilinear"  ? Interpolation::bilinear
                                        : mode == "bicubic" ? Interpolation::bicubic
                                                            : Interpolation::nearest,
                       .antialias = how.at("antialias")});
      },
      1);
}

TEST_CASE("the shorter side gets the size that is asked for, as torchvision rounds") {
  compare(
      "resize_shorter",
      [](at::Tensor const& images, Json const& how) {
        return frugal::ResizeShorter{.size = how.at("size")}(images);
      },
      1);
}

TEST_CASE("an image is resized as the same image in a batch, and so are several dimensions") {
  at::Tensor const batch = images({6, 3, 9, 8}, 1, false);
  at::Tensor const small = frugal::Resize{.height = 4, .width = 5}(batch);
  CHECK(at::equal(resize(batch[2], 4, 5), small[2]));
  CHECK(at::equal(resize(batch.view({2, 3, 3, 9, 8}), 4, 5).view({6, 3, 4, 5}), small));
}

TEST_CASE("an image in a decoder's memory is resized to the same bytes") {
  at::Tensor const image = images({3, 40, 50}, 1, true);
  at::Tensor const hwc = image.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
  CHECK(at::equal(resize(image, 13, 17), resize(hwc, 13, 17)));
}

TEST_CASE("what is no image is refused") {
  CHECK_THROWS_AS(resize(at::zeros({4, 4}), 2, 2), frugal::ShapeError);
  CHECK_THROWS_AS(resize(at::zeros({3, 4, 4}, at::kLong), 2, 2), frugal::DtypeError);
  CHECK_THROWS_AS(resize(at::zeros({3, 4, 4}), 0, 2), frugal::SettingsError);
}

TEST_CASE("a resized crop is that of torchvision") {
  compare(
      "resized_crop",
      [](at::Tensor const& images, Json const& how) {
        return frugal::resized_crop(
            images, {how.at("top"), how.at("left"), how.at("height"), how.at("width")}, 8, 9);
      },
      1);
}

TEST_CASE("each image is its own box, resized, whatever its batch") {
  for (bool const bytes : {true, false}) {
    at::Tensor const all = images({4, 3, 20, 30}, 2, bytes);
    auto const keys = keys_of(4);
    RandomResizedCrop const crop{.height = 10, .width = 8};
    at::Tensor const out = crop(all, keys);
    for (std::int64_t b = 0; b < 4; ++b) {
      auto const box = crop.box(keys[static_cast<std::size_t>(b)], 20, 30);
      CHECK(at::equal(out[b], frugal::resized_crop(all[b], box, 10, 8)));
    }
    CHECK(at::equal(crop(all.narrow(0, 3, 1), std::span(keys).last(1))[0], out[3]));
  }
}

TEST_CASE("areas are uniform within their range, and boxes lie within the image") {
  RandomResizedCrop const crop;
  double sum = 0, least = 1, most = 0;
  auto const keys = keys_of(20'000);
  for (auto const& key : keys) {
    auto const box = crop.box(key, 400, 400);
    REQUIRE((box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0 &&
             box.top + box.height <= 400 && box.left + box.width <= 400));
    double const ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    REQUIRE((ratio > 0.73 && ratio < 1.36));
    double const area = static_cast<double>(box.height * box.width) / (400 * 400);
    sum += area;
    least = std::min(least, area);
    most = std::max(most, area);
  }
  // Boxes that do not fit are drawn again, so that the mean is below that of 0.08 .. 1. 20,000
  // boxes of torchvision 0.26 have 0.477, with a standard error of 0.002.
  CHECK(std::abs(sum / static_cast<double>(keys.size()) - 0.477) < 0.01);
  CHECK(least < 0.09);
  CHECK(most > 0.95);
}

TEST_CASE("an image that no box fits gives its middle, in a shape that is allowed") {
  RandomResizedCrop const wide{.area = {1, 1}, .aspect = {2, 3}};
  CHECK(wide.box(keys_of(1)[0], 100, 100) == Box{25, 0, 50, 100});
  CHECK(wide.box(keys_of(1)[0], 10, 100) == Box{0, 35, 10, 30});
}

TEST_CASE("an area or an aspect that is no range is refused") {
  auto const all = images({1, 3, 8, 8}, 1, true);
  CHECK_THROWS_AS((RandomResizedCrop{.area = {0, 1}}(all, keys_of(1))), frugal::SettingsError);
  CHECK_THROWS_AS((RandomResizedCrop{.area = {0.5, 1.5}}(all, keys_of(1))), frugal::SettingsError);
  CHECK_THROWS_AS((RandomResizedCrop{.aspect = {2, 1}}(all, keys_of(1))), frugal::SettingsError);
}

}  // namespace frugal_test::data_image_geometry
