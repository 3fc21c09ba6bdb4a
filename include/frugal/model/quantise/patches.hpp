// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// A convolution of one image as a product (im2col): a column for each position of the output, a
/// row for each number under the kernel, in the order of the weight. LibTorch's im2col takes no
/// bytes.
struct PatchShape {
  std::int64_t channels, height, width;
  std::int64_t kernel_height, kernel_width;
  std::int64_t out_height, out_width;
  std::int64_t stride[2], padding[2], dilation[2];

  FRUGAL_INLINE static PatchShape of(LayerCall const& call, at::IntArrayRef input,
                                     at::IntArrayRef weight) {
    auto const of_side = [](std::vector<std::int64_t> const& sides, std::size_t side) {
      return sides[std::min(side, sides.size() - 1)];
    };
    PatchShape shape{input[1], input[2], input[3], weight[2], weight[3], 0, 0, {}, {}, {}};
    for (std::size_t side = 0; side < 2; ++side) {
      shape.stride[side] = of_side(call.stride, side);
      shape.padding[side] = of_side(call.padding, side);
      shape.dilation[side] = of_side(call.dilation, side);
      std::int64_t const kernel = shape.dilation[side] * (weight[2 + side] - 1) + 1;
      std::int64_t const room = input[2 + side] + 2 * shape.padding[side] - kernel;
      // Division rounds towards zero: a kernel that is larger than the image would still have a place.
      (side == 0 ? shape.out_height : shape.out_width) =
          room < 0 ? 0 : room / shape.stride[side] + 1;
    }
    return shape;
  }

  std::int64_t rows() const { return channels * kernel_height * kernel_width; }
  std::int64_t positions() const { return out_height * out_width; }

  /// `zero` is the byte of numbers beyond the edges.
  FRUGAL_INLINE void gather(std::int8_t const* image, std::int8_t zero, std::int8_t* out) const {
    std::int64_t const under = kernel_height * kernel_width;
    at::parallel_for(0, rows(), 1 + (1 << 16) / positions(), [&](auto begin, auto end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::int8_t const* const channel = image + row / under * height * width;
        std::int64_t const down = row % under / kernel_width * dilation[0] - padding[0];
        std::int64_t const along = row % kernel_width * dilation[1] - padding[1];
        std::int8_t* to = out + row * positions();
        for (std::int64_t y = 0; y < out_height; ++y, to += out_width) {
          std::int64_t const from = y * stride[0] + down;
          if (from < 0 || from >= height) {
            std::memset(to, zero, static_cast<std::size_t>(out_width));
          } else {
            gather_line(channel + from * width, along, zero, to);
          }
        }
      }
    });
  }

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
