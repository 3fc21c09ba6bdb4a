// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora/nf4.hpp>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/finite_weight.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE std::uint8_t nf4_code(float value) {
  auto const above = std::upper_bound(nf4_values.begin(), nf4_values.end(), value);
  if (above == nf4_values.begin()) return 0;
  if (above == nf4_values.end()) return 15;
  auto const below = std::prev(above);
  return static_cast<std::uint8_t>((value - *below > *above - value ? above : below) -
                                   nf4_values.begin());
}

FRUGAL_INLINE std::array<float, Nf4Ratios::ladders * Nf4Ratios::steps> const& Nf4Ratios::all() {
  static std::array<float, ladders * steps> const made = [] {
    std::array<float, ladders * steps> ratios{};
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      auto const finest = static_cast<double>(i % steps) / 512;
      ratios[i] = static_cast<float>(std::exp2(-std::ldexp(finest, static_cast<int>(i / steps))));
    }
    return ratios;
  }();
  return made;
}

FRUGAL_INLINE std::uint8_t Nf4Ratios::ladder(float least) {
  std::size_t found = 0;
  while (found + 1 < ladders && all()[found * steps + steps - 1] > least) ++found;
  return static_cast<std::uint8_t>(found);
}

FRUGAL_INLINE std::uint8_t Nf4Ratios::step(std::uint8_t ladder, float ratio) {
  float const* const first = all().data() + ladder * steps;
  float const* const below = std::lower_bound(first, first + steps, ratio, std::greater<>());
  if (below == first) return 0;
  if (below == first + steps) return steps - 1;
  return static_cast<std::uint8_t>((*(below - 1) - ratio < ratio - *below ? below - 1 : below) -
                                   first);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Nf4Weight::Nf4Weight(at::Tensor const& weight)
    : torch::nn::Module("Nf4Weight"), sizes_(weight.sizes().vec()) {
  at::NoGradGuard const no_gradients;
  at::Tensor const values = weight.detach().to(at::kCPU, at::kFloat).contiguous();
  detail::require_finite(values, {}, "Nf4Weight");
  std::int64_t const count = values.numel();
  std::int64_t const blocks = (count + detail::nf4_block - 1) / detail::nf4_block;
  at::Tensor const codes = at::zeros({blocks * detail::nf4_block / 2}, at::kByte);
  at::Tensor const scales = at::zeros({blocks}, at::kFloat);
  auto const* const in = values.const_data_ptr<float>();
  auto* const out = codes.mutable_data_ptr<std::uint8_t>();
  auto* const largest = scales.mutable_data_ptr<float>();
  at::parallel_for(0, blocks, 256, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t block = from; block < to; ++block) {
      std::int64_t const first = block * detail::nf4_block;
      std::int64_t const size = std::min(detail::nf4_block, count - first);
      float most = 0;
      for (std::int64_t i = 0; i < size; ++i) most = std::max(most, std::abs(in[first + i]));
      // The inverse of a smaller number is infinite.
      if (most < std::numeric_limits<float>::min()) most = 0;
      largest[block] = most;
      float const inverse = most == 0 ? 0 : 1 / most;
      for (std::int64_t i = 0; i < detail::nf4_block; i += 2) {
        auto const code = [&](std::int64_t j) {
          return detail::nf4_code(j < size ? in[first + j] * inverse : 0);
        };
        out[(first + i) / 2] = static_cast<std::uint8_t>(code(i) << 4 | code(i + 1));
      }
    }
  });
  std::int64_t const groups = (blocks + detail::nf4_scales - 1) / detail::nf4_scales;
  at::Tensor const steps = at::zeros({blocks}, at::kByte);
  at::Tensor const ladders = at::zeros({groups}, at::kByte);
  at::Tensor const tops = at::zeros({groups}, at::kFloat);
  for (std::int64_t group = 0; group < groups; ++group) {
    std::int64_t const first = group * detail::nf4_scales;
    std::int64_t const end = std::min(blocks, first + detail::nf4_scales);
    float const top = *std::max_element(largest + first, largest + end);
    if (top == 0) continue;
    float least = top;  // of a block of zeros any scale will do
    for (std::int64_t i = first; i < end; ++i) {
      if (largest[i] != 0) least = std::min(least, largest[i]);
    }
    std::uint8_t const ladder = detail::Nf4Ratios::ladder(least / top);
    tops.mutable_data_ptr<float>()[group] = top;
    ladders.mutable_data_ptr<std::uint8_t>()[group] = ladder;
    for (std::int64_t i = first; i < end; ++i) {
      steps.mutable_data_ptr<std::uint8_t>()[i] = detail::Nf4Ratios::step(ladder, largest[i] / top);
    }
  }
  auto const add = [&](char const* name, at::Tensor const& tensor) {
    at::Tensor const there = register_buffer(name, tensor.to(weight.device()));
    fix_tensor(there);
    return there;
  };
  codes_ = add("codes", codes);
  steps_ = add("steps", steps);
  ladders_ = add("ladders", ladders);
  tops_ = add("tops", tops);
}

FRUGAL_INLINE at::Tensor Nf4Weight::unpack(std::vector<at::Tensor> const& parts,
                                           at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor const& codes = parts[0];
  std::int64_t const blocks = parts[1].numel();
  auto const& ratios = detail::Nf4Ratios::all();
  auto const each = [&](at::Tensor const& of_groups) {
    return of_groups.repeat_interleave(detail::nf4_scales).slice(0, 0, blocks);
  };
  at::Tensor const ratio =
      table_on(codes.device(), ratios.data(), ratios.size())
          .index_select(0, each(parts[2]).to(at::kLong) *
                                   static_cast<std::int64_t>(detail::Nf4Ratios::steps) +
                               parts[1].to(at::kLong));
  at::Tensor const scales = each(parts[3]) * ratio;
  std::int64_t const count = c10::multiply_integers(sizes);
  if (!codes.is_cpu()) return unpack_there(codes, scales, count, sizes, type);
  at::Tensor whole = at::empty({blocks * detail::nf4_block}, at::kFloat);
  auto const* const in = codes.const_data_ptr<std::uint8_t>();
  auto const* const scale = scales.const_data_ptr<float>();
  auto* const out = whole.mutable_data_ptr<float>();
  static std::array<std::array<float, 2>, 256> const pairs = [] {
    std::array<std::array<float, 2>, 256> all{};
    for (std::size_t i = 0; i < 256; ++i) {
      all[i] = {detail::nf4_values[i >> 4], detail::nf4_values[i & 15]};
    }
    return all;
  }();
  at::parallel_for(0, blocks, 256, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t block = from; block < to; ++block) {
      float const by = scale[block];
      auto const* const bytes = in + block * detail::nf4_block / 2;
      float* const values = out + block * detail::nf4_block;
      for (std::int64_t i = 0; i < detail::nf4_block / 2; ++i) {
        values[2 * i] = pairs[bytes[i]][0] * by;
        values[2 * i + 1] = pairs[bytes[i]][1] * by;
      }
    }
  });
  return whole.slice(0, 0, count).view(sizes).to(type);
}

FRUGAL_INLINE at::Tensor Nf4Weight::table_on(at::Device device, float const* values,
                                             std::size_t count) {
  return at::from_blob(const_cast<float*>(values), {static_cast<std::int64_t>(count)}, at::kFloat)
      .to(device);
}

FRUGAL_INLINE at::Tensor Nf4Weight::unpack_there(at::Tensor const& codes, at::Tensor const& scales,
                                                 std::int64_t count, at::IntArrayRef sizes,
                                                 at::ScalarType type) {
  at::Tensor const values =
      table_on(codes.device(), detail::nf4_values.data(), detail::nf4_values.size());
  at::Tensor const each =
      at::stack({codes.bitwise_right_shift(4), codes.bitwise_and(15)}, 1).view(-1).to(at::kLong);
  at::Tensor const whole =
      values.index_select(0, each).view({-1, detail::nf4_block}) * scales.unsqueeze(1);
  return whole.view(-1).slice(0, 0, count).view(sizes).to(type);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void pack_weight(torch::nn::Module& layer, at::Tensor const& weight) {
  auto const packed = layer.register_module(packed_child, std::make_shared<Nf4Weight>(weight));
  drop_weight(layer, weight);
  intercept(weight, std::make_shared<Nf4Hook>(packed));
}

}  // namespace frugal::detail
