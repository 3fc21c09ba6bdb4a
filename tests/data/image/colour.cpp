// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/colour.hpp>
#include <frugal/error.hpp>

#include <array>

namespace frugal_test::image_colour {

using namespace frugal_test::image;
using Adjust = at::Tensor (*)(at::Tensor const&, std::span<double const>);

void like_torchvision(std::string const& op, Adjust adjust) {
  compare(
      op,
      [&](at::Tensor const& images, Json const& how) {
        return adjust(images, std::array{how.at("factor").get<double>()});
      },
      1);
}

TEST_CASE("brightness, contrast, saturation and hue are those of torchvision") {
  like_torchvision("adjust_brightness", frugal::adjust_brightness);
  like_torchvision("adjust_contrast", frugal::adjust_contrast);
  like_torchvision("adjust_saturation", frugal::adjust_saturation);
  like_torchvision("adjust_hue", frugal::adjust_hue);
}

TEST_CASE("each image of a batch has a factor of its own") {
  std::array const factors{0.1, 0.3, 0.5};
  for (bool const bytes : {true, false}) {
    at::Tensor const all = images({3, 3, 6, 7}, 2, bytes);
    for (Adjust const adjust : {frugal::adjust_brightness, frugal::adjust_contrast,
                                frugal::adjust_saturation, frugal::adjust_hue}) {
      at::Tensor const out = adjust(all, factors);
      CHECK((out.scalar_type() == all.scalar_type()));
      for (std::int64_t b = 0; b < 3; ++b) {
        CHECK(at::equal(out.narrow(0, b, 1), adjust(all.narrow(0, b, 1), std::span(factors).subspan(
                                                                             std::size_t(b), 1))));
      }
    }
  }
}

TEST_CASE("grey pixels have no hue to turn") {
  at::Tensor const grey = images({1, 1, 5, 5}, 3, true).expand({1, 3, 5, 5}).contiguous();
  CHECK(at::equal(frugal::adjust_hue(grey, std::array{0.3}), grey));
}

TEST_CASE("other channels than 1 and 3, and other numbers of factors, are refused") {
  CHECK_THROWS_AS(frugal::adjust_hue(at::zeros({1, 4, 2, 2}), std::array{0.1}), frugal::ShapeError);
  CHECK_THROWS_AS(frugal::adjust_contrast(at::zeros({2, 3, 2, 2}), std::array{0.1}),
                  frugal::ShapeError);
}

}  // namespace frugal_test::image_colour
