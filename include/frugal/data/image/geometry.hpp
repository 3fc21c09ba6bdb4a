// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/image/annotated.hpp>
#include <frugal/data/image/image_batch.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Each transform also takes an AnnotatedImage, whose mask, boxes and keypoints move with the image: a
// random one with the key of the sample, `(sample, key)`. Masks take the nearest pixel. Errors are
// those of images, and a ShapeError for annotations that do not fit.
namespace frugal {

/// Random transform: mirrors an image with `probability`, drawn from its own key.
///
/// Cost  a copy of the images; if all or none are mirrored, no more than that.
struct RandomFlip {
  double probability = 0.5;
  bool vertical = false;  ///< upside down, instead of left to right
  /// Needed for samples with keypoints: those that change places; KeypointPairs{} if none do.
  std::optional<KeypointPairs> keypoint_pairs{};
  std::uint64_t stream = draw_stream("RandomFlip");

  bool flips(SampleKey const& key) const { return Draw(key, stream).chance(probability); }

  std::string identity() const;

  AnnotatedImage operator()(AnnotatedImage sample, SampleKey const& key) const;

  at::Tensor operator()(at::Tensor const& images, std::span<SampleKey const> keys) const {
    detail::check_images(images, keys, "RandomFlip");
    std::vector<std::int64_t> mirrored;
    for (std::size_t b = 0; b < keys.size(); ++b) {
      if (flips(keys[b])) mirrored.push_back(static_cast<std::int64_t>(b));
    }
    return detail::change_rows(
        images, mirrored, [&](at::Tensor const& some) { return some.flip(vertical ? -2 : -1); });
  }
};

namespace detail {

void check_boxes(at::Tensor const& images, std::span<Box const> boxes);

}  // namespace detail

/// The middle of images [..., C, H, W], as a view. Images that are smaller get a black border.
///
/// Equal to  torchvision.transforms.v2.functional.center_crop.
at::Tensor center_crop(at::Tensor const& images, std::int64_t height, std::int64_t width);

/// Transform: the middle of images.
struct CenterCrop {
  std::int64_t height = 224;  ///< pixels
  std::int64_t width = 224;   ///< pixels
  /// Annotated images: a box of which less than this share of the area is left is removed.
  double visible = 0;

  std::string identity() const {
    return detail::image_transform_text("CenterCrop", 1, height, width, visible);
  }

  AnnotatedImage operator()(AnnotatedImage sample) const;

  at::Tensor operator()(at::Tensor const& images) const {
    return center_crop(images, height, width);
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
  std::int64_t padding = 0;  ///< pixels; black, and -100 in masks
  /// Annotated images: a box of which less than this share of the area is left is removed.
  double visible = 0;
  std::uint64_t stream = draw_stream("RandomCrop");

  /// The box of an image of this size, border included.
  Box box(SampleKey const& key, std::int64_t of_height, std::int64_t of_width) const;

  std::string identity() const {
    return detail::image_transform_text("RandomCrop", 1, height, width, padding, visible, stream);
  }

  AnnotatedImage operator()(AnnotatedImage sample, SampleKey const& key) const;

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

enum class Interpolation { bilinear, bicubic, nearest };

/// How images are resized.
struct ResizeOptions {
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;  ///< average over what a pixel covers when images shrink; not for nearest
};

namespace detail {

at::Tensor resized(at::Tensor const& images_BCHW, at::IntArrayRef size,
                   ResizeOptions const& options);

}  // namespace detail

/// Images [..., C, H, W] of uint8 or floats, at `height` rows and `width` columns.
///
/// Equal to  torchvision.transforms.v2.functional.resize; bytes within 1, because torchvision takes
///           another path on processors without AVX2.
/// Cost      one operator. Bytes on the CPU stay bytes; on a device they go through float32.
at::Tensor resize(at::Tensor const& images, std::int64_t height, std::int64_t width,
                  ResizeOptions const& options = {});

/// Resizes the shorter side to `size` pixels, and the longer one in proportion, rounded down.
at::Tensor resize_shorter(at::Tensor const& images, std::int64_t size,
                          ResizeOptions const& options = {});

/// Transform: images at `height` x `width`.
struct Resize {
  std::int64_t height = 224;  ///< pixels
  std::int64_t width = 224;   ///< pixels
  ResizeOptions options{};

  std::string identity() const;

  AnnotatedImage operator()(AnnotatedImage sample) const;

  at::Tensor operator()(at::Tensor const& images) const {
    return resize(images, height, width, options);
  }
};

/// Transform: images whose shorter side has `size` pixels.
struct ResizeShorter {
  std::int64_t size = 256;  ///< pixels
  ResizeOptions options{};

  std::string identity() const;

  AnnotatedImage operator()(AnnotatedImage sample) const;

  at::Tensor operator()(at::Tensor const& images) const {
    return resize_shorter(images, size, options);
  }
};

/// A box of images [..., C, H, W], resized.
///
/// Equal to  torchvision.transforms.v2.functional.resized_crop, as resize is.
at::Tensor resized_crop(at::Tensor const& images, Box const& box, std::int64_t height,
                        std::int64_t width, ResizeOptions const& options = {});

/// Random transform: a part of each image, of random area and shape, resized to `height` x `width`.
/// Each image's box is drawn from its own key.
///
/// Cost    one resize per image: each has a scale of its own.
/// Source  Szegedy et al., "Going deeper with convolutions" (CVPR 2015), section 6; the boxes are
///         those of torchvision.transforms.v2.RandomResizedCrop in distribution.
struct RandomResizedCrop {
  std::int64_t height = 224;                       ///< pixels
  std::int64_t width = 224;                        ///< pixels
  std::array<double, 2> area{0.08, 1.0};           ///< least and most, as parts of the image's
  std::array<double, 2> aspect{3.0 / 4, 4.0 / 3};  ///< least and most width over height
  ResizeOptions options{};
  /// Annotated images: a box of which less than this share of the area is left is removed.
  double visible = 0;
  std::uint64_t stream = draw_stream("RandomResizedCrop");

  /// The box of an image of this size.
  Box box(SampleKey const& key, std::int64_t of_height, std::int64_t of_width) const;

  std::string identity() const;

  AnnotatedImage operator()(AnnotatedImage sample, SampleKey const& key) const;

  at::Tensor operator()(at::Tensor const& images, std::span<SampleKey const> keys) const {
    detail::check_images(images, keys, "RandomResizedCrop");
    detail::check_setting(0 < area[0] && area[0] <= area[1] && area[1] <= 1,
                          "an area outside of (0, 1]", "RandomResizedCrop",
                          "Set area to the least and the most, as in {0.08, 1}.");
    detail::check_setting(0 < aspect[0] && aspect[0] <= aspect[1], "no range of aspect ratios",
                          "RandomResizedCrop",
                          "Set aspect to the least and the most, as in {3.0 / 4, 4.0 / 3}.");
    at::Tensor out = detail::empty_images(images, height, width);
    for (std::size_t b = 0; b < keys.size(); ++b) {
      auto const row = static_cast<std::int64_t>(b);
      out.select(0, row).copy_(resized_crop(images.select(0, row),
                                            box(keys[b], images.size(2), images.size(3)), height,
                                            width, options));
    }
    return out;
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/geometry.ipp>
#endif
