// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/flip.hpp>
#include <frugal/error.hpp>

namespace frugal_test::image_flip {

using namespace frugal_test::image;
using frugal::RandomFlip;

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

}  // namespace frugal_test::image_flip
