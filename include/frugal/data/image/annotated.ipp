// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/annotated.hpp>

#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void check_annotated(AnnotatedImage const& sample, char const* caller) {
  check_images(sample.data, caller);
  auto const refuse = [&](char const* part, at::Tensor const& is, std::string const& expected) {
    throw ShapeError(
        {.what = std::string(part) + " does not fit its image",
         .where = std::string(caller) + ", image " + std::to_string(sample.id),
         .why = "it is " + shape_text(is) + ", and the image " + shape_text(sample.data),
         .fix = "Give " + expected + "."});
  };
  if (sample.data.dim() != 3) refuse("the image", sample.data, "[C, H, W]");
  at::Tensor const& mask = sample.mask;
  if (mask.defined() && (mask.dim() != 2 || mask.size(0) != sample.data.size(1) ||
                         mask.size(1) != sample.data.size(2))) {
    refuse("the mask", mask, "[H, W]");
  }
  std::int64_t const objects = sample.boxes.defined() ? sample.boxes.size(0) : 0;
  if (sample.boxes.defined() && (sample.boxes.dim() != 2 || sample.boxes.size(1) != 4)) {
    refuse("the list of boxes", sample.boxes, "[N, 4]");
  }
  for (at::Tensor const* each : {&sample.labels, &sample.crowd}) {
    if (each->defined() && (each->dim() != 1 || each->size(0) != objects)) {
      refuse("the list of labels or crowds", *each, "[N], one for each box");
    }
  }
  at::Tensor const& points = sample.keypoints;
  if (points.defined() && (points.dim() != 3 || points.size(0) != objects || points.size(2) != 3)) {
    refuse("the list of keypoints", points, "[N, K, 3], K for each box");
  }
}

/// x, y, visibility of keypoints that are moved: those that are not marked stay 0.
FRUGAL_INLINE at::Tensor moved_keypoints(at::Tensor const& from, at::Tensor const& x,
                                         at::Tensor const& y) {
  at::Tensor const visible = from.select(2, 2);
  return at::stack({x, y, visible}, 2).mul_(visible.ne(0).unsqueeze(2));
}

FRUGAL_INLINE std::vector<std::int64_t> mirrored_order(AnnotatedImage const& sample,
                                                       std::optional<KeypointPairs> const& pairs) {
  if (!sample.keypoints.defined()) return {};
  std::string const where = "RandomFlip, image " + std::to_string(sample.id);
  if (!pairs) {
    throw SettingsError(
        {.what = "keypoints cannot be mirrored without their pairs",
         .where = where,
         .why = "the left hand of a mirrored person is a right hand",
         .fix = "Set RandomFlip::keypoint_pairs, for COCO to those of "
                "keypoint_pairs(set.keypoints()); to KeypointPairs{} if there are none."});
  }
  std::int64_t const count = sample.keypoints.size(1);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (auto const& [a, b] : *pairs) {
    if (a < 0 || b < 0 || a >= count || b >= count) {
      throw SettingsError({.what = "a pair of keypoints does not exist",
                           .where = where,
                           .why = "it is " + std::to_string(a) + " and " + std::to_string(b) +
                                  ", and objects have " + std::to_string(count),
                           .fix = "Give the numbers of keypoints, from 0 on."});
    }
    std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  }
  return order;
}

FRUGAL_INLINE void flip_annotations(AnnotatedImage& sample, bool vertical,
                                    std::vector<std::int64_t> const& order) {
  std::int64_t const side = sample.data.size(vertical ? 1 : 2);
  if (sample.mask.defined()) sample.mask = sample.mask.flip(vertical ? 0 : 1);
  if (sample.boxes.defined()) {
    auto const from = sample.boxes.unbind(1);
    auto const mirrored = [side](at::Tensor const& x) { return at::rsub(x, side); };
    sample.boxes = vertical
                       ? at::stack({from[0], mirrored(from[3]), from[2], mirrored(from[1])}, 1)
                       : at::stack({mirrored(from[2]), from[1], mirrored(from[0]), from[3]}, 1);
  }
  if (!sample.keypoints.defined()) return;
  at::Tensor const from = sample.keypoints.index_select(1, on_device_of(sample.keypoints, order));
  at::Tensor const x = from.select(2, 0), y = from.select(2, 1);
  // The number of a pixel, counted from the other side.
  sample.keypoints = vertical ? moved_keypoints(from, x, at::rsub(y, side - 1))
                              : moved_keypoints(from, at::rsub(x, side - 1), y);
}

FRUGAL_INLINE void resize_annotations(AnnotatedImage& sample, std::int64_t height,
                                      std::int64_t width) {
  std::int64_t const old_height = sample.data.size(1), old_width = sample.data.size(2);
  if (height == old_height && width == old_width) return;
  if (sample.mask.defined()) {
    // In single precision, as torchvision: it holds every class.
    std::array const size{height, width};
    sample.mask = at::upsample_nearest2d(sample.mask.to(at::kFloat).unsqueeze(0).unsqueeze(0), size)
                      .squeeze(0)
                      .squeeze(0)
                      .to(at::kLong);
  }
  double const x = static_cast<double>(width) / static_cast<double>(old_width);
  double const y = static_cast<double>(height) / static_cast<double>(old_height);
  auto const scale = [](at::Tensor const& like, std::vector<double> const& factors) {
    return on_device_of(like, factors).to(like.scalar_type());
  };
  if (sample.boxes.defined()) sample.boxes = sample.boxes.mul(scale(sample.boxes, {x, y, x, y}));
  if (sample.keypoints.defined()) {
    sample.keypoints = sample.keypoints.mul(scale(sample.keypoints, {x, y, 1}));
  }
}

FRUGAL_INLINE void crop_annotations(AnnotatedImage& sample, Box const& box, double visible) {
  check_setting(visible >= 0 && visible <= 1, "a visible share outside of 0 to 1", "a crop",
                "Set visible to the least share of a box's area that keeps the box.");
  if (sample.mask.defined()) {
    std::int64_t const rows = sample.mask.size(0), columns = sample.mask.size(1);
    // A negative border is cut off.
    std::array const border{-box.left, box.left + box.width - columns, -box.top,
                            box.top + box.height - rows};
    sample.mask = at::constant_pad_nd(sample.mask, border, ignored_label);
  }
  at::Tensor keep;
  if (sample.boxes.defined()) {
    auto const from = sample.boxes.unbind(1);
    auto const moved = [](at::Tensor const& x, std::int64_t by, std::int64_t most) {
      return x.sub(by).clamp_(0, most);
    };
    at::Tensor const left = moved(from[0], box.left, box.width);
    at::Tensor const right = moved(from[2], box.left, box.width);
    at::Tensor const top = moved(from[1], box.top, box.height);
    at::Tensor const bottom = moved(from[3], box.top, box.height);
    at::Tensor const area = (right - left).mul_(bottom - top);
    at::Tensor const before = (from[2] - from[0]).mul_(from[3] - from[1]);
    keep = area.gt(0).logical_and_(area.ge(before.mul_(visible))).nonzero().squeeze(1);
    sample.boxes = at::stack({left, top, right, bottom}, 1).index_select(0, keep);
    if (sample.labels.defined()) sample.labels = sample.labels.index_select(0, keep);
    if (sample.crowd.defined()) sample.crowd = sample.crowd.index_select(0, keep);
  }
  if (!sample.keypoints.defined()) return;
  at::Tensor from = keep.defined() ? sample.keypoints.index_select(0, keep) : sample.keypoints;
  at::Tensor const x = from.select(2, 0).sub(box.left), y = from.select(2, 1).sub(box.top);
  // The last pixel has number size - 1; half a pixel farther is still in it, and rounds to the next.
  at::Tensor const inside =
      x.ge(0).logical_and_(y.ge(0)).logical_and_(x.lt(box.width)).logical_and_(y.lt(box.height));
  at::Tensor const marked = from.select(2, 2).mul(inside);
  sample.keypoints = moved_keypoints(at::stack({x, y, marked}, 2), x, y);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE KeypointPairs keypoint_pairs(std::vector<std::string> const& names) {
  KeypointPairs pairs;
  for (std::size_t left = 0; left < names.size(); ++left) {
    std::size_t const at = names[left].find("left");
    if (at == std::string::npos) continue;
    std::string other = names[left];
    other.replace(at, 4, "right");
    auto const right = std::find(names.begin(), names.end(), other);
    if (right == names.end()) continue;
    pairs.push_back(
        {static_cast<std::int64_t>(left), static_cast<std::int64_t>(right - names.begin())});
  }
  return pairs;
}

}  // namespace frugal
