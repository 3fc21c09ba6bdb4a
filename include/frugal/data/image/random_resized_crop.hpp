// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <ATen/ATen.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/patches.hpp>
#include <frugal/data/image/resize.hpp>
#include <frugal/data/sampling/draw.hpp>

namespace frugal {

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
  std::uint64_t stream = draw_stream("RandomResizedCrop");

  /// The box of an image of this size.
  Box box(SampleKey const& key, std::int64_t of_height, std::int64_t of_width) const;

  std::string identity() const;

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
#include <frugal/data/image/random_resized_crop.ipp>
#endif
