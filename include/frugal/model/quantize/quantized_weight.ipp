// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/quantize/quantized_weight.hpp>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

namespace frugal {

FRUGAL_INLINE Range Percentile::range(Histogram const& seen) const {
  if (!(percent > 0 && percent <= 100)) {
    throw SettingsError({.what = "the percentile is " + std::to_string(percent),
                         .where = "quantize, Percentile",
                         .why = "it is the share of numbers that are not clipped",
                         .fix = "Set it above 0 and to 100 at most, such as 99.99."});
  }
  double const total = std::accumulate(seen.counts.begin(), seen.counts.end(), 0.0);
  double const cut = (100 - percent) / 200;
  double sum = 0;
  std::optional<std::size_t> low, high;
  for (std::size_t bin = 0; bin < seen.counts.size(); ++bin) {
    sum += seen.counts[bin] / total;
    if (!low && sum >= cut) low = bin;
    if (!high && sum >= 1 - cut) high = bin;
  }
  return {seen.edge(low.value_or(0)), seen.edge(high.value_or(seen.counts.size()))};
}

FRUGAL_INLINE Range Entropy::range(Histogram const& seen) const {
  std::size_t const zero = seen.counts.size() / 2;
  double least = std::numeric_limits<double>::infinity();
  Range best = seen.over;
  for (std::size_t half = levels / 2; half <= zero; ++half) {
    std::size_t const begin = zero - half;
    std::size_t const end = std::min(zero + half + 1, seen.counts.size());
    double const lost = divergence(seen.counts, begin, end);
    if (lost >= least) continue;
    least = lost;
    best = {seen.edge(begin), seen.edge(end)};
  }
  return best;
}

FRUGAL_INLINE double Entropy::divergence(std::vector<double> const& counts, std::size_t begin,
                                         std::size_t end) {
  auto const at = [&](std::size_t bin) {
    return counts.begin() + static_cast<std::ptrdiff_t>(bin);
  };
  std::vector<double> const inside(at(begin), at(end));
  std::vector<double> p = inside;
  p.front() += std::accumulate(counts.begin(), at(begin), 0.0);
  p.back() += std::accumulate(at(end), counts.end(), 0.0);
  std::vector<double> q(p.size(), 0);
  std::size_t const merged = inside.size() / levels;
  for (std::size_t level = 0; level < levels; ++level) {
    std::size_t const first = level * merged;
    std::size_t const last = first + merged;
    std::size_t const all = level + 1 == levels ? inside.size() : last;
    double sum = 0, used = 0;
    for (std::size_t bin = first; bin < all; ++bin) sum += inside[bin];
    for (std::size_t bin = first; bin < last; ++bin) used += p[bin] != 0 ? 1 : 0;
    if (used == 0) continue;
    for (std::size_t bin = first; bin < last; ++bin) q[bin] = std::floor(sum / used);
  }
  if (!smooth(p) || !smooth(q)) return std::numeric_limits<double>::infinity();
  double const sum_p = std::accumulate(p.begin(), p.end(), 0.0);
  double const sum_q = std::accumulate(q.begin(), q.end(), 0.0);
  double lost = 0;
  for (std::size_t bin = 0; bin < p.size(); ++bin) {
    lost += p[bin] / sum_p * std::log((p[bin] / sum_p) / (q[bin] / sum_q));
  }
  return lost;
}

FRUGAL_INLINE bool Entropy::smooth(std::vector<double>& counts) {
  auto const empty = static_cast<double>(std::count(counts.begin(), counts.end(), 0.0));
  double const used = static_cast<double>(counts.size()) - empty;
  if (used == 0) return false;
  constexpr double epsilon = 1e-4;
  for (double& count : counts) count += count == 0 ? epsilon : -epsilon * empty / used;
  return true;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void SeenInput::extend(at::Tensor const& input) {
  if (input.numel() == 0) return;
  any_ = true;
  auto const [low, high] = at::aminmax(input.detach());
  low_ = std::min(low_, low.item<double>());
  high_ = std::max(high_, high.item<double>());
  finite_ = finite_ && std::isfinite(low_) && std::isfinite(high_) &&
            std::isfinite(low.item<double>()) && std::isfinite(high.item<double>());
}

FRUGAL_INLINE void SeenInput::count(at::Tensor const& input, std::size_t bins, bool symmetric) {
  if (seen_.counts.empty()) {
    double const most = std::max(std::abs(low_), std::abs(high_));
    seen_ = {std::vector<double>(bins, 0), symmetric ? Range{-most, most} : Range{low_, high_}};
  }
  if (!(seen_.over.low < seen_.over.high)) return;
  at::Tensor const counts =
      at::histc(input.detach().to(at::kCPU, at::kDouble), static_cast<std::int64_t>(bins),
                seen_.over.low, seen_.over.high);
  double const* const found = counts.const_data_ptr<double>();
  for (std::size_t bin = 0; bin < bins; ++bin) seen_.counts[bin] += found[bin];
}

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
  Quantized const bytes = grid_.defined() ? on_grid(images) : Int8Format::rows(images);
  auto const zero = static_cast<std::int8_t>(grid_.defined() ? input_grid().zero_point - 128 : 0);
  PatchShape const shape = PatchShape::of(call, input.sizes(), values_.sizes());
  at::Tensor const output = at::empty(
      {input.size(0), values_.size(0), shape.out_height, shape.out_width}, images.options());
  at::Tensor const patches = at::empty({shape.rows(), shape.positions()}, values_.options());
  Quantized const factor{values_.flatten(1), scales_};
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

FRUGAL_INLINE bool is_plain(torch::nn::Conv2dImpl const& layer) {
  auto const& padding = layer.options.padding();
  return layer.options.groups() == 1 && !std::holds_alternative<torch::enumtype::kSame>(padding);
}

FRUGAL_INLINE std::vector<WeightedLayer> weighted_layers(torch::nn::Module& root) {
  register_members(root);
  TensorPlaceCounts const places(root);
  std::vector<WeightedLayer> found;
  auto const look = [&](std::string const& name, torch::nn::Module& module) {
    if (auto const* const linear = module.as<torch::nn::LinearImpl>()) {
      found.push_back({name, &module, linear->weight});
    } else if (auto const* const convolution = module.as<torch::nn::Conv2dImpl>()) {
      if (is_plain(*convolution)) found.push_back({name, &module, convolution->weight});
    }
  };
  // A module may be on the stack, and then has no pointer of itself.
  for (auto const& item : root.named_modules(/*name_prefix=*/{}, /*include_self=*/false)) {
    look(item.key(), *item.value());
  }
  look("", root);
  std::erase_if(found, [&](WeightedLayer const& each) {
    // One that is quantized has none any more, and one that a forward pass computes is not its own.
    at::Tensor const* const own = own_parameters(*each.module).find("weight");
    return own == nullptr || !own->is_same(each.weight) || places.shared(each.weight);
  });
  return found;
}

}  // namespace frugal::detail
