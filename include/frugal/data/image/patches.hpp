// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, N images of the result, C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <span>

#include <ATen/ATen.h>

namespace frugal {

/// A rectangle of an image.
struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;  ///< pixels

  friend bool operator==(Box const&, Box const&) = default;
};

/// A rectangle of image `from`, and where its top left corner goes in image `to` of the result.
struct Patch {
  std::int64_t from = 0;
  Box box{};
  std::int64_t to = 0, top = 0, left = 0;
};

namespace detail {

/// Pastes by operators, for memory that the host cannot read.
void paste_by_operators(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
                        std::span<Patch const> patches);

/// Copies each patch's rows, which are contiguous bytes in either order of memory.
void paste_by_rows(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
                   std::span<Patch const> patches, bool channels_last);

/// Copies patches of a batch into another one of the same dtype, device and channels.
///
/// Cost  on the CPU a memcpy per row of a patch; on a device an operator per patch.
void paste(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
           std::span<Patch const> patches);

/// Memory for `count` images like those of a batch, of another size, in its order of memory.
at::Tensor empty_images(at::Tensor const& images_BCHW, std::int64_t height, std::int64_t width);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/patches.ipp>
#endif
