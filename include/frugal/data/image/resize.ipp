// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/resize.hpp>

#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor resized(at::Tensor const& images_BCHW, at::IntArrayRef size,
                                 ResizeOptions const& options) {
  std::optional<double> const from_sizes;
  switch (options.interpolation) {
    case Interpolation::bilinear:
      return options.antialias
                 ? at::_upsample_bilinear2d_aa(images_BCHW, size, false, from_sizes, from_sizes)
                 : at::upsample_bilinear2d(images_BCHW, size, false, from_sizes, from_sizes);
    case Interpolation::bicubic:
      return options.antialias
                 ? at::_upsample_bicubic2d_aa(images_BCHW, size, false, from_sizes, from_sizes)
                 : at::upsample_bicubic2d(images_BCHW, size, false, from_sizes, from_sizes);
    case Interpolation::nearest:
      break;
  }
  return at::upsample_nearest2d(images_BCHW, size, from_sizes, from_sizes);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE at::Tensor resize(at::Tensor const& images, std::int64_t height, std::int64_t width,
                                ResizeOptions const& options) {
  detail::check_images(images, "resize");
  detail::check_setting(height > 0 && width > 0, "a size below 1 pixel", "resize",
                        "Set height and width to 1 or more.");
  if (images.size(-2) == height && images.size(-1) == width) return images;
  at::Tensor batch = images;
  while (batch.dim() < 4) batch = batch.unsqueeze(0);
  if (batch.dim() > 4) batch = batch.flatten(0, -4);
  if (batch.size(0) == 1 && batch.size(1) > 1 &&
      batch.is_contiguous(at::MemoryFormat::ChannelsLast)) {
    // A decoder's image: with the strides of a batch the operator writes its order of memory, too,
    // instead of packing it (https://github.com/pytorch/pytorch/issues/68430).
    std::int64_t const channels = batch.size(1), row = batch.size(3) * channels;
    batch = batch.as_strided(batch.sizes(), {batch.numel(), 1, row, channels});
  }
  std::array const size{height, width};
  bool const cast = images.scalar_type() == at::kByte && !images.is_cpu() &&
                    options.interpolation != Interpolation::nearest;
  batch = detail::resized(cast ? batch.to(at::kFloat) : batch, size, options);
  // Bicubic weights overshoot.
  if (cast) batch = batch.round_().clamp_(0, 255).to(at::kByte);
  auto shape = images.sizes().vec();
  shape[shape.size() - 2] = height;
  shape[shape.size() - 1] = width;
  return batch.reshape(shape);
}

FRUGAL_INLINE at::Tensor resize_shorter(at::Tensor const& images, std::int64_t size,
                                        ResizeOptions const& options) {
  detail::check_images(images, "resize_shorter");
  std::int64_t const height = images.size(-2), width = images.size(-1);
  std::int64_t const longer = size * std::max(height, width) / std::min(height, width);
  return width <= height ? resize(images, longer, size, options)
                         : resize(images, size, longer, options);
}

FRUGAL_INLINE std::string Resize::identity() const {
  return detail::image_transform_text("Resize", 1, height, width,
                                      static_cast<int>(options.interpolation), options.antialias);
}

FRUGAL_INLINE std::string ResizeShorter::identity() const {
  return detail::image_transform_text("ResizeShorter", 1, size,
                                      static_cast<int>(options.interpolation), options.antialias);
}

}  // namespace frugal
