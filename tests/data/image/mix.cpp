// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/image/mix.hpp>

#include "references.hpp"

#include <doctest/doctest.h>

#include <frugal/core/run/objective.hpp>
#include <frugal/error.hpp>

#include <torch/nn/modules/linear.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace frugal_test::image_mix {

using namespace frugal_test::image;
using frugal::Batch;
using frugal::CutMix;
using frugal::mix_rows;
using frugal::MixUp;
using frugal::Mosaic;
using frugal::soft_targets;

at::Tensor labels() { return at::tensor({2, 0, 1, 2}, at::kLong); }
std::array<std::int64_t, 4> const before{3, 0, 1, 2};  // torchvision's partners

TEST_CASE("images and targets are mixed as torchvision mixes them") {
  auto const weights = [](Json const& how) {
    std::array<double, 4> all{};
    all.fill(how.at("weight").get<double>());
    return all;
  };
  compare("mixup", [&](at::Tensor const& images, Json const& how) {
    return mix_rows(images, before, weights(how));
  });
  compare("mixup_targets", [&](at::Tensor const&, Json const& how) {
    return mix_rows(soft_targets(labels(), 3), before, weights(how));
  });
}

TEST_CASE("MixUp gives each image its own weight, and a partner by a shift of the batch") {
  Batch const batch{images({4, 3, 5, 6}, 1, false), labels()};
  auto const keys = keys_of(4);
  MixUp const mix{.classes = 3, .alpha = 1};
  Batch const out = mix(batch, keys);
  std::array<double, 4> weights{};
  for (std::size_t b = 0; b < 4; ++b) weights[b] = mix.weight(keys[b]);
  CHECK(std::set(weights.begin(), weights.end()).size() == 4);
  bool found = false;
  for (std::int64_t shift = 1; shift < 4; ++shift) {
    std::array<std::int64_t, 4> const partners{shift, (1 + shift) % 4, (2 + shift) % 4,
                                               (3 + shift) % 4};
    if (!at::equal(out.data, mix_rows(batch.data, partners, weights))) continue;
    found = true;
    CHECK(at::equal(out.target, mix_rows(soft_targets(labels(), 3), partners, weights)));
  }
  CHECK(found);
  CHECK(at::allclose(out.target.sum(1), at::ones({4})));
}

TEST_CASE("a batch of the same keys is mixed the same, and all shifts occur") {
  std::set<std::int64_t> shifts;
  for (std::uint64_t epoch = 0; epoch < 60; ++epoch) {
    auto const partners = frugal::detail::partners_of(keys_of(4, 0, epoch), 9);
    CHECK(partners == frugal::detail::partners_of(keys_of(4, 0, epoch), 9));
    shifts.insert(partners[0]);
  }
  CHECK(shifts == std::set<std::int64_t>{1, 2, 3});
  CHECK(frugal::detail::partners_of(keys_of(1), 9) == std::vector<std::int64_t>{0});
}

TEST_CASE("CutMix pastes its boxes, as torchvision pastes one") {
  compare("cutmix", [](at::Tensor const& images, Json const& how) {
    at::Tensor out = images.clone();
    std::vector<frugal::Patch> patches;
    for (std::size_t b = 0; b < 4; ++b) {
      frugal::Box const box{how.at("top"), how.at("left"), how.at("height"), how.at("width")};
      patches.push_back({before[b], box, static_cast<std::int64_t>(b), box.top, box.left});
    }
    frugal::detail::paste(images, out, patches);
    return out;
  });
}

TEST_CASE("CutMix takes the box of each image from its partner, and weighs targets by area") {
  for (bool const bytes : {true, false}) {
    Batch const batch{images({4, 3, 9, 11}, 1, bytes), labels()};
    auto const keys = keys_of(4, 7);
    CutMix const mix{.classes = 3};
    Batch const out = mix(batch, keys);
    auto const partners = frugal::detail::partners_of(keys, mix.stream);
    at::Tensor const soft = soft_targets(labels(), 3);
    for (std::int64_t b = 0; b < 4; ++b) {
      auto const box = mix.box(keys[static_cast<std::size_t>(b)], 9, 11);
      std::int64_t const partner = partners[static_cast<std::size_t>(b)];
      at::Tensor expected = batch.data[b].clone();
      expected.narrow(1, box.top, box.height)
          .narrow(2, box.left, box.width)
          .copy_(batch.data[partner].narrow(1, box.top, box.height).narrow(2, box.left, box.width));
      CHECK(at::equal(out.data[b], expected));
      double const part = static_cast<double>(box.height * box.width) / 99;
      CHECK(at::allclose(out.target[b], soft[b] * (1 - part) + soft[partner] * part));
    }
  }
}

TEST_CASE("boxes have the areas of Beta(1, 1) where they are not cut off") {
  CutMix const mix{.classes = 2};
  double sum = 0;
  int inside = 0;
  for (auto const& key : keys_of(20'000)) {
    auto const box = mix.box(key, 1'000, 1'000);
    REQUIRE((box.top >= 0 && box.left >= 0 && box.top + box.height <= 1'000 &&
             box.left + box.width <= 1'000 && box.height >= 0 && box.width >= 0));
    sum += static_cast<double>(box.height * box.width) / 1e6;
    ++inside;
  }
  // The mean over sides s = sqrt(u) and middles: E[(s - s^2 / 4)^2] = 1/2 - 1/5 + 1/48.
  CHECK(std::abs(sum / inside - (0.5 - 0.2 + 1.0 / 48)) < 0.01);
}

TEST_CASE("a probability leaves the others as they are") {
  MixUp const rare{.classes = 3, .alpha = 1, .probability = 0.25};
  int mixed = 0;
  for (auto const& key : keys_of(4'000)) mixed += rare.weight(key) < 1;
  CHECK(std::abs(mixed - 1'000) < 150);
  CutMix const never{.classes = 3, .probability = 0};
  Batch const batch{images({4, 3, 5, 6}, 1, true), labels()};
  Batch const out = never(batch, keys_of(4));
  CHECK(at::equal(out.data, batch.data));
  CHECK(at::equal(out.target, soft_targets(labels(), 3)));
}

TEST_CASE("mixed batches can be mixed again") {
  Batch const batch{images({4, 3, 5, 6}, 1, false), labels()};
  Batch const out = MixUp{.classes = 3}(CutMix{.classes = 3}(batch, keys_of(4)), keys_of(4));
  CHECK(at::allclose(out.target.sum(1), at::ones({4})));
}

TEST_CASE("CrossEntropy of mixed targets is the weighted loss of both labels") {
  at::Tensor const logits = images({4, 3}, 8, false);
  std::array const weights{0.3, 0.3, 0.3, 0.3};
  at::Tensor const target = mix_rows(soft_targets(labels(), 3), before, weights);
  at::Tensor const mine = at::cross_entropy_loss(logits, labels());
  at::Tensor const theirs = at::cross_entropy_loss(logits, labels().roll(1));
  torch::nn::Identity same;
  auto const loss = frugal::CrossEntropy{}(same, Batch{logits, target});
  CHECK(loss.value.item<double>() ==
        doctest::Approx(0.3 * mine.item<double>() + 0.7 * theirs.item<double>()));
  CHECK(loss.weight == 4);
}

TEST_CASE("what cannot be mixed is refused") {
  Batch const bytes{images({4, 3, 5, 6}, 1, true), labels()};
  CHECK_THROWS_AS(MixUp{.classes = 3}(bytes, keys_of(4)), frugal::DtypeError);
  CHECK_THROWS_AS(CutMix{}(bytes, keys_of(4)), frugal::SettingsError);
  CHECK_THROWS_AS((CutMix{.classes = 3, .alpha = 0}(bytes, keys_of(4))), frugal::SettingsError);
  CHECK_THROWS_AS(CutMix{.classes = 2}(bytes, keys_of(4)), frugal::LabelError);
  CHECK_THROWS_AS(soft_targets(at::tensor({0, -100}, at::kLong), 3), frugal::LabelError);
  CHECK_THROWS_AS(soft_targets(at::zeros({4, 2}), 3), frugal::ShapeError);
}

TEST_CASE("four images touch a point with their corners, and fill the image") {
  std::int64_t const height = 12, width = 20;
  at::Tensor const all = images({6, 3, height, width}, 3, true);
  auto const keys = keys_of(6);
  Mosaic const mosaic;
  auto const patches = mosaic.patches(keys, height, width);
  REQUIRE(patches.size() == 24);
  at::Tensor const out = mosaic(all, keys);
  CHECK(out.sizes() == all.sizes());
  for (std::int64_t b = 0; b < 6; ++b) {
    auto const first = patches[static_cast<std::size_t>(4 * b)];
    std::int64_t const y = first.box.height, x = first.box.width;
    CHECK((first.from == b && y >= 3 && y <= 9 && x >= 5 && x <= 15));
    // The corner of each image that touches the point: its last or first row and column.
    auto const at = [&](std::size_t i) {
      return all[patches[static_cast<std::size_t>(4 * b) + i].from];
    };
    CHECK(at::equal(out[b].narrow(1, 0, y).narrow(2, 0, x),
                    at(0).narrow(1, height - y, y).narrow(2, width - x, x)));
    CHECK(at::equal(out[b].narrow(1, 0, y).narrow(2, x, width - x),
                    at(1).narrow(1, height - y, y).narrow(2, 0, width - x)));
    CHECK(at::equal(out[b].narrow(1, y, height - y).narrow(2, 0, x),
                    at(2).narrow(1, 0, height - y).narrow(2, width - x, x)));
    CHECK(at::equal(out[b].narrow(1, y, height - y).narrow(2, x, width - x),
                    at(3).narrow(1, 0, height - y).narrow(2, 0, width - x)));
  }
}

TEST_CASE("targets are mixed by area") {
  Batch const batch{images({4, 1, 10, 10}, 3, false), at::tensor({0, 1, 2, 3}, at::kLong)};
  auto const keys = keys_of(4, 3);
  Mosaic const mosaic{.classes = 4};
  Batch const out = mosaic(batch, keys);
  CHECK(at::equal(out.data, mosaic(batch.data, keys)));
  at::Tensor expected = at::zeros({4, 4});
  for (auto const& each : mosaic.patches(keys, 10, 10)) {  // label i is image i's
    expected[each.to][each.from] += static_cast<double>(each.box.height * each.box.width) / 100;
  }
  CHECK(at::allclose(out.target, expected));
  CHECK(at::allclose(out.target.sum(1), at::ones({4})));
}

TEST_CASE("a margin of a half is the middle, and more is refused") {
  auto const patches = Mosaic{.margin = 0.5}.patches(keys_of(3), 8, 8);
  for (auto const& each : patches) CHECK((each.box.height == 4 && each.box.width == 4));
  CHECK_THROWS_AS(Mosaic{.margin = 0.6}.patches(keys_of(3), 8, 8), frugal::SettingsError);
  Batch const batch{images({2, 1, 4, 4}, 3, false), at::zeros({2}, at::kLong)};
  CHECK_THROWS_AS(Mosaic{}(batch, keys_of(2)), frugal::SettingsError);
}

}  // namespace frugal_test::image_mix
