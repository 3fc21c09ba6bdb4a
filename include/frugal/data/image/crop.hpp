// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/patches.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/data/sampling/draw.hpp>
#include <frugal/error.hpp>

namespace frugal {

namespace detail {

void check_boxes(at::Tensor const& images, std::span<Box const> boxes);

}  // namespace detail

/// The middle of images [..., C, H, W], as a view. Images that are smaller get a black border.
///
/// Equal to  torchvision.transforms.v2.functional.center_crop.
at::Tensor centre_crop(at::Tensor const& images, std::int64_t height, std::int64_t width);

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
at::Tensor crop(at::Tensor const& images, std::span<Box const> boxes);

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
  Box box(SampleKey const& key, std::int64_t of_height, std::int64_t of_width) const;

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

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/crop.ipp>
#endif
