// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <frugal/core/libtorch/interception.hpp>

namespace frugal::detail {

/// A convolution of one image as a product (im2col): a column for each position of the output, a
/// row for each number under the kernel, in the order of the weight. LibTorch's im2col takes no
/// bytes.
struct PatchShape {
  std::int64_t channels, height, width;
  std::int64_t kernel_height, kernel_width;
  std::int64_t out_height, out_width;
  std::int64_t stride[2], padding[2], dilation[2];

  static PatchShape of(LayerCall const& call, at::IntArrayRef input, at::IntArrayRef weight);

  std::int64_t rows() const { return channels * kernel_height * kernel_width; }
  std::int64_t positions() const { return out_height * out_width; }

  /// `zero` is the byte of numbers beyond the edges.
  void gather(std::int8_t const* image, std::int8_t zero, std::int8_t* out) const;

 private:
  void gather_line(std::int8_t const* line, std::int64_t along, std::int8_t zero,
                   std::int8_t* to) const {
    std::int64_t const step = stride[1];
    // The first position at or after the line's begin, and the first one after its end.
    std::int64_t const first = std::clamp((step - 1 - along) / step, std::int64_t{0}, out_width);
    std::int64_t const last =
        along >= width ? first : std::clamp((width - 1 - along) / step + 1, first, out_width);
    std::memset(to, zero, static_cast<std::size_t>(first));
    if (step == 1) {
      std::memcpy(to + first, line + first + along, static_cast<std::size_t>(last - first));
    } else {
      for (std::int64_t x = first; x < last; ++x) to[x] = line[x * step + along];
    }
    std::memset(to + last, zero, static_cast<std::size_t>(out_width - last));
  }
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/quantise/patches.ipp>
#endif
