// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/image/annotated.hpp>

#include <doctest/doctest.h>

#include <frugal/core/source/labels.hpp>
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/geometry.hpp>
#include <frugal/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "references.hpp"

namespace frugal_test::data_image_annotated {

using namespace frugal;
using image::images;
using image::keys_of;
using support::Json;

Json const& all() {
  static Json const file = support::reference("annotated.json");
  return file;
}

/// The sample of annotated.json, whose object i has label i.
AnnotatedImage sample() {
  Json const& given = all().at("given");
  auto const size = support::shape_in(given.at("size"));
  return {.data = images({3, size[0], size[1]}, 1, true),
          .mask = support::tensor_in(given.at("mask"), size, at::kLong),
          .boxes = support::tensor_in(given.at("boxes"), {-1, 4}),
          .labels = at::arange(6),
          .crowd = at::arange(6).eq(2),
          .keypoints = support::tensor_in(given.at("keypoints"), {-1, 3, 3}),
          .id = 7};
}

/// Calls `move` for the cases of that name, and compares what it makes of the annotations.
template <class Move>
void compare(std::string const& name, Move&& move) {
  int cases = 0;
  for (Json const& each : all().at("transforms")) {
    if (each.at("name") != name) continue;
    ++cases;
    CAPTURE(each.at("arguments").dump());
    AnnotatedImage moved = sample();
    move(moved, each.at("arguments"));
    CHECK(at::equal(moved.mask, support::tensor_in(each.at("mask"),
                                                   support::shape_in(each.at("size")), at::kLong)));
    auto const kept = support::tensor_in(each.at("kept"), {-1}, at::kLong);
    CHECK(at::equal(moved.labels, kept));
    CHECK(at::equal(moved.crowd, kept.eq(2)));
    auto const boxes = support::tensor_in(each.at("boxes"), {-1, 4});
    auto const keypoints = support::tensor_in(each.at("keypoints"), {-1, 3, 3});
    REQUIRE(moved.boxes.sizes() == boxes.sizes());
    REQUIRE(moved.keypoints.sizes() == keypoints.sizes());
    CHECK(at::allclose(moved.boxes, boxes, 0, 4e-6));
    CHECK(at::allclose(moved.keypoints, keypoints, 0, 4e-6));
  }
  CHECK(cases > 0);
}

TEST_CASE("annotations are mirrored as torchvision mirrors them") {
  RandomFlip flip{.probability = 1, .keypoint_pairs = KeypointPairs{}};
  auto const mirror = [&](AnnotatedImage& x, Json const&) { x = flip(x, keys_of(1)[0]); };
  compare("horizontal_flip", mirror);
  flip.vertical = true;
  compare("vertical_flip", mirror);
}

TEST_CASE("annotations are resized as torchvision resizes them") {
  compare("resize", [](AnnotatedImage& x, Json const& how) {
    x = Resize{.height = how.at("height"), .width = how.at("width")}(x);
  });
}

TEST_CASE("annotations are cropped as torchvision crops and pads them") {
  compare("crop", [](AnnotatedImage& x, Json const& how) {
    frugal::detail::crop_annotations(
        x, {how.at("top"), how.at("left"), how.at("height"), how.at("width")},
        how.value("visible", 0.0));
  });
  compare("center_crop", [](AnnotatedImage& x, Json const& how) {
    x = CenterCrop{.height = how.at("height"), .width = how.at("width")}(x);
  });
}

bool same(AnnotatedImage const& a, AnnotatedImage const& b) {
  return at::equal(a.mask, b.mask) && at::equal(a.boxes, b.boxes) &&
         at::equal(a.labels, b.labels) && at::equal(a.crowd, b.crowd) &&
         at::equal(a.keypoints, b.keypoints);
}

TEST_CASE("random crops take their own box of the annotations") {
  for (SampleKey const& key : keys_of(4)) {
    RandomCrop const crop{.height = 9, .width = 11, .padding = 5, .visible = 0.3};
    AnnotatedImage expected = sample();
    Box box = crop.box(key, 30, 38);
    box.top -= 5;
    box.left -= 5;
    frugal::detail::crop_annotations(expected, box, 0.3);
    CHECK(same(crop(sample(), key), expected));

    RandomResizedCrop const resized{.height = 8, .width = 12};
    expected = sample();
    box = resized.box(key, 20, 28);
    frugal::detail::crop_annotations(expected, box, 0);
    expected.data = at::zeros({1, box.height, box.width});
    frugal::detail::resize_annotations(expected, 8, 12);
    CHECK(same(resized(sample(), key), expected));
  }
  AnnotatedImage expected = sample();
  frugal::detail::resize_annotations(expected, 10, 14);
  CHECK(same(ResizeShorter{.size = 10}(sample()), expected));
}

TEST_CASE("the middle of a small image has no class in its border") {
  // 20 x 28 in 23 x 32: borders of 1 and 2 rows, and of 2 columns.
  AnnotatedImage const moved = CenterCrop{.height = 23, .width = 32}(sample());
  at::Tensor const border = at::constant_pad_nd(sample().mask, {2, 2, 1, 2}, ignored_label);
  CHECK(at::equal(moved.mask, border));
  CHECK(at::equal(moved.data, at::constant_pad_nd(sample().data, {2, 2, 1, 2}, 0)));
  CHECK(at::allclose(moved.boxes, sample().boxes + at::tensor({2, 1, 2, 1})));
}

TEST_CASE("the image of an augmented sample is that of the image alone") {
  Augment const augment{RandomResizedCrop{.height = 16, .width = 16},
                        RandomFlip{.keypoint_pairs = KeypointPairs{}},
                        ColorJitter{.brightness = 0.4},
                        RandomCrop{.height = 12, .width = 12, .padding = 2}, Normalize{}};
  for (SampleKey const& key : keys_of(3)) {
    CHECK(at::equal(augment(sample(), key).data, augment(sample().data, key)));
  }
  Augment const plain{ResizeShorter{.size = 10}, CenterCrop{.height = 10, .width = 10}, ToFloat{}};
  CHECK(at::equal(plain(sample()).data, plain(sample().data)));
}

TEST_CASE("mask, box and keypoint stay on the pixels that they mark") {
  // One bright pixel in row 6, column 9, its box and its keypoint.
  AnnotatedImage marked{.data = at::zeros({1, 16, 16}),
                        .mask = at::zeros({16, 16}, at::kLong),
                        .boxes = at::tensor({9.0F, 6.0F, 10.0F, 7.0F}).view({1, 4}),
                        .labels = at::zeros({1}, at::kLong),
                        .keypoints = at::tensor({9.0F, 6.0F, 2.0F}).view({1, 1, 3})};
  marked.data[0][6][9] = 1;
  marked.mask[6][9] = 1;
  Augment const augment{RandomFlip{.keypoint_pairs = KeypointPairs{}},
                        RandomFlip{.vertical = true, .keypoint_pairs = KeypointPairs{}},
                        RandomCrop{.height = 9, .width = 9, .padding = 3}};
  int lost = 0, flipped = 0;
  for (SampleKey const& key : keys_of(40)) {
    auto const moved = augment(marked, key);
    at::Tensor const bright = moved.data[0].nonzero();
    CHECK(at::equal(moved.mask.eq(1).nonzero(), bright));
    lost += bright.size(0) == 0;
    REQUIRE(moved.boxes.size(0) == bright.size(0));
    if (bright.size(0) == 0) continue;
    auto const y = bright[0][0].item<float>(), x = bright[0][1].item<float>();
    flipped += x != 9;
    CHECK(at::equal(moved.boxes[0], at::tensor({x, y, x + 1, y + 1})));
    CHECK(at::equal(moved.keypoints[0][0], at::tensor({x, y, 2.0F})));
  }
  CHECK((lost > 0 && lost < 40 && flipped > 0));
}

TEST_CASE("a mirrored left hand is a right hand") {
  AnnotatedImage const before = sample();
  RandomFlip flip{.probability = 1, .keypoint_pairs = KeypointPairs{}};
  at::Tensor const plain = flip(before, keys_of(1)[0]).keypoints;
  flip.keypoint_pairs = KeypointPairs{{0, 2}};
  at::Tensor const swapped = flip(before, keys_of(1)[0]).keypoints;
  CHECK(at::equal(swapped, plain.flip(1)));
  CHECK(flip.identity() != RandomFlip{.probability = 1}.identity());
}

TEST_CASE("names of keypoints say which are pairs") {
  CHECK((keypoint_pairs({"nose", "left_eye", "right_eye", "right_ear", "left_ear", "left_hip"}) ==
         KeypointPairs{{1, 2}, {4, 3}}));
}

TEST_CASE("keypoints are not mirrored without their pairs, flipped or not") {
  for (double const probability : {0.0, 1.0}) {
    RandomFlip flip{.probability = probability};
    CHECK_THROWS_AS(flip(sample(), keys_of(1)[0]), SettingsError);
    flip.keypoint_pairs = KeypointPairs{{0, 3}};
    CHECK_THROWS_AS(flip(sample(), keys_of(1)[0]), SettingsError);
  }
  AnnotatedImage boxes = sample();
  boxes.keypoints = at::Tensor();
  CHECK_NOTHROW(RandomFlip{}(boxes, keys_of(1)[0]));
}

TEST_CASE("an image without an object, and parts that were not read, go through") {
  AnnotatedImage empty{.data = sample().data,
                       .boxes = at::empty({0, 4}),
                       .labels = at::empty({0}, at::kLong),
                       .crowd = at::empty({0}, at::kBool),
                       .keypoints = at::empty({0, 3, 3})};
  Augment const augment{RandomResizedCrop{.height = 8, .width = 8},
                        RandomFlip{.probability = 1, .keypoint_pairs = KeypointPairs{}}};
  auto const moved = augment(empty, keys_of(1)[0]);
  CHECK(moved.boxes.sizes() == at::IntArrayRef({0, 4}));
  CHECK(moved.keypoints.sizes() == at::IntArrayRef({0, 3, 3}));
  CHECK(!moved.mask.defined());
  AnnotatedImage const alone = augment(AnnotatedImage{.data = sample().data}, keys_of(1)[0]);
  CHECK(!alone.boxes.defined());
}

TEST_CASE("annotations that do not fit their image are refused") {
  auto const refused = [](auto&& change) {
    AnnotatedImage bad = sample();
    change(bad);
    CHECK_THROWS_AS(Resize{}(bad), ShapeError);
  };
  refused([](AnnotatedImage& x) { x.data = x.data.unsqueeze(0); });
  refused([](AnnotatedImage& x) { x.mask = x.mask.narrow(1, 0, 27); });
  refused([](AnnotatedImage& x) { x.boxes = at::zeros({6, 5}); });
  refused([](AnnotatedImage& x) { x.labels = at::arange(5); });
  refused([](AnnotatedImage& x) { x.crowd = at::arange(7).eq(1); });
  refused([](AnnotatedImage& x) { x.keypoints = at::zeros({6, 3}); });
  CHECK_THROWS_AS(RandomCrop({.height = 4, .width = 4, .visible = 1.5})(sample(), keys_of(1)[0]),
                  SettingsError);
}

}  // namespace frugal_test::data_image_annotated
