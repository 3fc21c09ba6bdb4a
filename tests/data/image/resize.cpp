// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/resize.hpp>
#include <frugal/error.hpp>

namespace frugal_test::image_resize {

using namespace frugal_test::image;
using frugal::Interpolation;
using frugal::resize;

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

}  // namespace frugal_test::image_resize
