// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/random_resized_crop.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cmath>

namespace frugal_test::image_random_resized_crop {

using namespace frugal_test::image;
using frugal::Box;
using frugal::RandomResizedCrop;

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

}  // namespace frugal_test::image_random_resized_crop
