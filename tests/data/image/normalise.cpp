// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/normalise.hpp>
#include <frugal/error.hpp>

namespace frugal_test::image_normalise {

using namespace frugal_test::image;
using frugal::Normalise;
using frugal::ToFloat;

TEST_CASE("bytes and floats are normalised as torchvision does it") {
  compare("normalise", [](at::Tensor const& images, Json const&) { return Normalise{}(images); });
}

TEST_CASE("bytes become floats from 0 to 1, and floats stay as they are") {
  at::Tensor const ends = at::tensor({0, 255}, at::kByte).view({1, 1, 2});
  CHECK(at::equal(ToFloat{}(ends), at::tensor({0.0F, 1.0F}).view({1, 1, 2})));
  at::Tensor const floats = images({3, 2, 2}, 1, false);
  CHECK(ToFloat{}(floats).is_same(floats));
}

TEST_CASE("grey images have one mean") {
  at::Tensor const out = Normalise{.mean = {0.5}, .std = {0.25}}(at::ones({2, 1, 2, 2}));
  CHECK(at::equal(out, at::full({2, 1, 2, 2}, 2.0F)));
}

TEST_CASE("other channels than means are refused, and so is a deviation of 0") {
  CHECK_THROWS_AS(Normalise{}(at::zeros({2, 1, 2, 2})), frugal::ShapeError);
  CHECK_THROWS_AS((Normalise{.mean = {0}, .std = {1, 1}}(at::zeros({2, 1, 2, 2}))),
                  frugal::ShapeError);
  CHECK_THROWS_AS((Normalise{.mean = {0}, .std = {0}}(at::zeros({2, 1, 2, 2}))),
                  frugal::SettingsError);
}

}  // namespace frugal_test::image_normalise
