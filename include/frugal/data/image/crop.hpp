// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/patches.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/data/sample_set.hpp>
#include <frugal/data/sampling/draw.hpp>
#include <frugal/data/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

namespace detail {

FRUGAL_INLINE void check_boxes(at::Tensor const& images, std::span<Box const> boxes) {
  check_images(images, "crop");
  auto const refuse = [&](std::string why) {
    throw ShapeError({.what = "the boxes do not fit the images",
                      .where = "crop",
                      .why = std::move(why),
                      .fix = "Give each of the images one box within it, all of one size."});
  };
  if (images.dim() != 4 || boxes.empty() || std::cmp_not_equal(boxes.size(), images.size(0))) {
    refuse(std::to_string(boxes.size()) + " boxes were given for images of " + shape_text(images));
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    Box const& box = boxes[i];
    if (box.height != boxes[0].height || box.width != boxes[0].width) {
      refuse("boxes 0 and " + std::to_string(i) + " have two sizes");
    }
    if (box.top < 0 || box.left < 0 || box.height < 1 || box.width < 1 ||
        box.height > images.size(2) - box.top || box.width > images.size(3) - box.left) {
      refuse("box " + std::to_string(i) + " is not within its image");
    }
  }
}

}  // namespace detail

/// The middle of images [..., C, H, W], as a view. Images that are smaller get a black border.
///
/// Equal to  torchvision.transforms.v2.functional.center_crop.
FRUGAL_INLINE at::Tensor centre_crop(at::Tensor const& images, std::int64_t height,
                                     std::int64_t width) {
  detail::check_images(images, "centre_crop");
  detail::check_setting(height > 0 && width > 0, "a size below 1 pixel", "centre_crop",
                        "Set height and width to 1 or more.");
  std::int64_t const more_rows = std::max<std::int64_t>(height - images.size(-2), 0);
  std::int64_t const more_columns = std::max<std::int64_t>(width - images.size(-1), 0);
  at::Tensor large = images;
  if (more_rows > 0 || more_columns > 0) {
    std::array const border{more_columns / 2, (more_columns + 1) / 2, more_rows / 2,
                            (more_rows + 1) / 2};
    large = at::constant_pad_nd(images, border, 0);
  }
  // Halves go to the even number, as Python rounds.
  auto const middle = [](std::int64_t spare) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(spare) / 2));
  };
  return large.narrow(-2, middle(large.size(-2) - height), height)
      .narrow(-1, middle(large.size(-1) - width), width);
}

/// Transform: the middle of images.
struct CentreCrop {
  std::int64_t height = 224;  ///< pixels
  std::int64_t width = 224;   ///< pixels

  std::string identity() const {
    return detail::image_transform_text("CentreCrop", 1, height, width);
  }

  at::Tensor operator()(at::Tensor const& images) const {
    return centre_crop(images, height, width);
  }
};

/// The box of each image [B, C, H, W]; all boxes have one size.
///
/// Errors  ShapeError for no boxes or another number than images, boxes of several sizes, and a box
///         that is not within its image.
FRUGAL_INLINE at::Tensor crop(at::Tensor const& images, std::span<Box const> boxes) {
  detail::check_boxes(images, boxes);
  at::Tensor out = detail::empty_images(images, boxes[0].height, boxes[0].width);
  std::vector<Patch> patches;
  patches.reserve(boxes.size());
  for (Box const& box : boxes) {
    auto const row = static_cast<std::int64_t>(patches.size());
    patches.push_back({.from = row, .box = box, .to = row});
  }
  detail::paste(images, out, patches);
  return out;
}

/// Random transform: a part of each image, anywhere in it, after a black border of `padding` pixels
/// on every side (4 for CIFAR). Each image's place is drawn from its own key.
///
/// Errors  ShapeError for images smaller than the crop.
struct RandomCrop {
  std::int64_t height = 32;  ///< pixels
  std::int64_t width = 32;   ///< pixels
  std::int64_t padding = 0;  ///< pixels
  std::uint64_t stream = draw_stream("RandomCrop");

  /// The box of an image of this size, border included.
  FRUGAL_INLINE Box box(SampleKey const& key, std::int64_t of_height, std::int64_t of_width) const {
    Draw draw(key, stream);
    auto const place = [&](std::int64_t spare) {
      return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(spare) + 1));
    };
    std::int64_t const top = place(of_height - height);
    return {.top = top, .left = place(of_width - width), .height = height, .width = width};
  }

  std::string identity() const {
    return detail::image_transform_text("RandomCrop", 1, height, width, padding, stream);
  }

  at::Tensor operator()(at::Tensor const& images, std::span<SampleKey const> keys) const {
    detail::check_images(images, keys, "RandomCrop");
    detail::check_setting(height > 0 && width > 0 && padding >= 0, "a size below 1 pixel",
                          "RandomCrop",
                          "Set height and width to 1 or more, and padding to 0 or more.");
    std::int64_t const rows = images.size(2) + 2 * padding, columns = images.size(3) + 2 * padding;
    if (rows < height || columns < width) {
      throw ShapeError({.what = "the images are smaller than the crop",
                        .where = "RandomCrop",
                        .why = "they are " + detail::shape_text(images) + " with a border of " +
                               std::to_string(padding) + ", and the crop is " +
                               std::to_string(height) + " x " + std::to_string(width),
                        .fix = "Resize them before, raise padding, or crop less."});
    }
    std::vector<Box> boxes;
    boxes.reserve(keys.size());
    for (SampleKey const& key : keys) boxes.push_back(box(key, rows, columns));
    if (padding == 0) return crop(images, boxes);
    return crop(at::constant_pad_nd(images, {padding, padding, padding, padding}, 0), boxes);
  }
};

}  // namespace frugal
