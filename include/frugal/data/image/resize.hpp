// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/ATen.h>

namespace frugal {

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

  at::Tensor operator()(at::Tensor const& images) const {
    return resize(images, height, width, options);
  }
};

/// Transform: images whose shorter side has `size` pixels.
struct ResizeShorter {
  std::int64_t size = 256;  ///< pixels
  ResizeOptions options{};

  std::string identity() const;

  at::Tensor operator()(at::Tensor const& images) const {
    return resize_shorter(images, size, options);
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/resize.ipp>
#endif
