// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/quantise/quantised_weight.hpp>

#include <frugal/inline.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

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

FRUGAL_INLINE InputGrid InputGrid::of(Range range) {
  auto const [scale, zero_point] = at::_choose_qparams_per_tensor(
      at::tensor({range.low, range.high}, at::kFloat), /*reduce_range=*/false);
  return {scale, zero_point};
}

FRUGAL_INLINE Int8Weight::Int8Weight(at::Tensor const& values, at::Tensor const& scales,
                                     std::optional<InputGrid> grid)
    : values_(register_buffer("values", values)), scales_(register_buffer("scales", scales)) {
  if (!grid) return;
  grid_ = register_buffer(
      "input_grid", at::tensor({grid->scale, static_cast<double>(grid->zero_point)}, at::kDouble));
  sums_ = register_buffer("sums", values.flatten(1).sum(1, /*keepdim=*/false, at::kInt));
}

FRUGAL_INLINE at::Tensor Int8Weight::convolved(LayerCall const& call) const {
  at::Tensor const input = call.input.dim() == 3 ? call.input.unsqueeze(0) : call.input;
  at::Tensor const images = input.reshape({input.size(0), -1}).contiguous();
  Quantised const bytes = grid_.defined() ? on_grid(images) : Int8Format::rows(images);
  auto const zero = static_cast<std::int8_t>(grid_.defined() ? input_grid().zero_point - 128 : 0);
  PatchShape const shape = PatchShape::of(call, input.sizes(), values_.sizes());
  at::Tensor const output = at::empty(
      {input.size(0), values_.size(0), shape.out_height, shape.out_width}, images.options());
  at::Tensor const patches = at::empty({shape.rows(), shape.positions()}, values_.options());
  Quantised const factor{values_.flatten(1), scales_};
  at::Tensor const less = grid_.defined() ? offsets() : at::Tensor();
  for (std::int64_t i = 0; i < input.size(0); ++i) {
    shape.gather(bytes.values[i].const_data_ptr<std::int8_t>(), zero,
                 patches.data_ptr<std::int8_t>());
    Int8Format::multiply_into(output[i].flatten(1), factor,
                              {patches, bytes.scales[i].expand({shape.positions()}).contiguous()},
                              {.rows = less, .columns = {}});
  }
  if (call.bias.defined()) output.add_(call.bias.view({-1, 1, 1}));
  return call.input.dim() == 3 ? output.squeeze(0) : output;
}

FRUGAL_INLINE Int4Weight::Int4Weight(at::Tensor const& weight_NK) {
  at::Tensor const groups = weight_NK.reshape({weight_NK.size(0), -1, group});
  at::Tensor const low = groups.amin(-1, /*keepdim=*/true);
  at::Tensor const scale = groups.amax(-1, true).sub_(low).div_(15).clamp_min_(1e-6);
  at::Tensor const zero = scale.mul(8).add_(low);
  at::Tensor const steps = groups.sub(low).div_(scale).round_().clamp_(0, 15).to(at::kInt);
  values_ = register_buffer("values", at::_convert_weight_to_int4pack_for_cpu(
                                          steps.view(weight_NK.sizes()), /*innerKTiles=*/2));
  scales_ = register_buffer(
      "scales", at::cat({scale, zero}, -1).transpose(0, 1).contiguous().to(at::kBFloat16));
}

}  // namespace frugal::detail
