// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/check_images.hpp>

#include <string>

namespace frugal_test::image_check_images {

using namespace frugal_test::image;
using frugal::detail::check_images;

template <class Error, class F>
std::string why(F&& f) {
  try {
    f();
  } catch (Error const& error) {
    return error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("images are bytes or floats of three dimensions or more") {
  check_images(at::zeros({1, 2, 3}), "test");
  check_images(at::zeros({4, 1, 2, 3}, at::kByte), "test");
  check_images(at::zeros({4, 1, 2, 3}, at::kHalf), "test");
  CHECK(why<frugal::ShapeError>([] { check_images(at::zeros({2, 3}), "test"); }) ==
        "it is [2, 3] Float");
  CHECK(why<frugal::ShapeError>([] { check_images(at::zeros({3, 0, 2}), "test"); }) ==
        "it is [3, 0, 2] Float");
  CHECK(why<frugal::DtypeError>([] { check_images(at::zeros({1, 2, 3}, at::kInt), "test"); }) ==
        "it has dtype Int");
}

TEST_CASE("a batch has a key for each image") {
  check_images(at::zeros({2, 1, 2, 3}), keys_of(2), "test");
  CHECK(why<frugal::ShapeError>([] {
          check_images(at::zeros({2, 1, 2, 3}), keys_of(3), "test");
        }) == "the images are [2, 1, 2, 3] Float, with 3 keys");
}

TEST_CASE("floats end at 1, bytes at 255") {
  CHECK(frugal::detail::brightest(at::zeros({1})) == 1);
  CHECK(frugal::detail::brightest(at::zeros({1}, at::kByte)) == 255);
}

}  // namespace frugal_test::image_check_images
