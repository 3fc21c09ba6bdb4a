// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/quantise/patches.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE PatchShape PatchShape::of(LayerCall const& call, at::IntArrayRef input,
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
    (side == 0 ? shape.out_height : shape.out_width) = room < 0 ? 0 : room / shape.stride[side] + 1;
  }
  return shape;
}

FRUGAL_INLINE void PatchShape::gather(std::int8_t const* image, std::int8_t zero,
                                      std::int8_t* out) const {
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

}  // namespace frugal::detail
