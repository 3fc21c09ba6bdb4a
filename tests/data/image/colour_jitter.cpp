// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/colour.hpp>
#include <frugal/data/image/colour_jitter.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace frugal_test::image_colour_jitter {

using namespace frugal_test::image;
using frugal::ColourJitter;

ColourJitter const jitter{.brightness = 0.4, .contrast = 0.3, .saturation = 0.2, .hue = 0.1};

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
  ColourJitter const strong{.brightness = 3};
  for (auto const& key : keys_of(1'000)) CHECK(strong.plan(key).factors[0] >= 0);
}

TEST_CASE("a jitter of nothing is no copy") {
  at::Tensor const all = images({2, 3, 4, 4}, 1, true);
  CHECK(ColourJitter{}(all, keys_of(2)).is_same(all));
}

TEST_CASE("widths out of range are refused") {
  at::Tensor const all = images({1, 3, 4, 4}, 1, true);
  CHECK_THROWS_AS(ColourJitter{.contrast = -0.1}(all, keys_of(1)), frugal::SettingsError);
  CHECK_THROWS_AS(ColourJitter{.hue = 0.6}(all, keys_of(1)), frugal::SettingsError);
}

}  // namespace frugal_test::image_colour_jitter
