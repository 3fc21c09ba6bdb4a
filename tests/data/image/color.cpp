// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/image/color.hpp>

#include "references.hpp"

#include <doctest/doctest.h>

#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace frugal_test::data_image_color {

using namespace frugal_test::image;
using frugal::ColorJitter;
using frugal::Normalize;
using frugal::ToFloat;

TEST_CASE("bytes and floats are normalized as torchvision does it") {
  compare("normalize", [](at::Tensor const& images, Json const&) { return Normalize{}(images); });
}

TEST_CASE("bytes become floats from 0 to 1, and floats stay as they are") {
  at::Tensor const ends = at::tensor({0, 255}, at::kByte).view({1, 1, 2});
  CHECK(at::equal(ToFloat{}(ends), at::tensor({0.0F, 1.0F}).view({1, 1, 2})));
  at::Tensor const floats = images({3, 2, 2}, 1, false);
  CHECK(ToFloat{}(floats).is_same(floats));
}

TEST_CASE("grey images have one mean") {
  at::Tensor const out = Normalize{.mean = {0.5}, .std = {0.25}}(at::ones({2, 1, 2, 2}));
  CHECK(at::equal(out, at::full({2, 1, 2, 2}, 2.0F)));
}

TEST_CASE("other channels than means are refused, and so is a deviation of 0") {
  CHECK_THROWS_AS(Normalize{}(at::zeros({2, 1, 2, 2})), frugal::ShapeError);
  CHECK_THROWS_AS((Normalize{.mean = {0}, .std = {1, 1}}(at::zeros({2, 1, 2, 2}))),
                  frugal::ShapeError);
  CHECK_THROWS_AS((Normalize{.mean = {0}, .std = {0}}(at::zeros({2, 1, 2, 2}))),
                  frugal::SettingsError);
}

ColorJitter const jitter{.brightness = 0.4, .contrast = 0.3, .saturation = 0.2, .hue = 0.1};

TEST_CASE("each image has its own changes in its own order, whatever its batch") {
  constexpr std::array changes{frugal::adjust_brightness, frugal::adjust_contrast,
                               frugal::adjust_saturation, frugal::adjust_hue};
  for (bool const bytes : {true, false}) {
    for (std::int64_t const side : {7, 80}) {  // together, and one by one
      at::Tensor const all = images({12, 3, side, side + 1}, 2, bytes);
      auto const keys = keys_of(12);
      at::Tensor const out = jitter(all, keys);
      for (std::int64_t b = 0; b < 12; ++b) {
        auto const plan = jitter.plan(keys[static_cast<std::size_t>(b)]);
        at::Tensor one = all.narrow(0, b, 1);
        for (int const change : plan.order) {
          auto const which = static_cast<std::size_t>(change);
          one = changes[which](one, std::span(plan.factors).subspan(which, 1));
        }
        CHECK(at::equal(out.narrow(0, b, 1), one));
      }
      CHECK(at::equal(jitter(all.narrow(0, 4, 3), std::span(keys).subspan(4, 3)),
                      out.narrow(0, 4, 3)));
    }
  }
}

TEST_CASE("factors fill their ranges, and every order occurs") {
  std::map<std::array<int, 4>, int> orders;
  std::array<double, 4> least{9, 9, 9, 9}, most{};
  for (auto const& key : keys_of(4'800)) {
    auto const plan = jitter.plan(key);
    ++orders[plan.order];
    for (std::size_t i = 0; i < 4; ++i) {
      least[i] = std::min(least[i], plan.factors[i]);
      most[i] = std::max(most[i], plan.factors[i]);
    }
  }
  CHECK(orders.size() == 24);
  for (auto const& [order, count] : orders) CHECK(std::abs(count - 200) < 75);
  std::array const low{0.6, 0.7, 0.8, -0.1}, high{1.4, 1.3, 1.2, 0.1};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK((least[i] >= low[i] && least[i] < low[i] + 0.01));
    CHECK((most[i] <= high[i] && most[i] > high[i] - 0.01));
  }
}

TEST_CASE("a factor is never negative") {
  ColorJitter const strong{.brightness = 3};
  for (auto const& key : keys_of(1'000)) CHECK(strong.plan(key).factors[0] >= 0);
}

TEST_CASE("a jitter of nothing is no copy") {
  at::Tensor const all = images({2, 3, 4, 4}, 1, true);
  CHECK(ColorJitter{}(all, keys_of(2)).is_same(all));
}

TEST_CASE("widths out of range are refused") {
  at::Tensor const all = images({1, 3, 4, 4}, 1, true);
  CHECK_THROWS_AS(ColorJitter{.contrast = -0.1}(all, keys_of(1)), frugal::SettingsError);
  CHECK_THROWS_AS(ColorJitter{.hue = 0.6}(all, keys_of(1)), frugal::SettingsError);
}

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

}  // namespace frugal_test::data_image_color
