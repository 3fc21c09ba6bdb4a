// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/autograd.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/dropped_weight.hpp>
#include <frugal/model/finite_weight.hpp>

namespace frugal {

namespace detail {

/// The 16 values of NormalFloat: quantiles of the normal distribution, scaled to [-1, 1], with an
/// exact zero (Dettmers et al., "QLoRA", 2023, appendix E).
inline constexpr std::array<float, 16> nf4_values{
    -1.0F,         -0.6961928F, -0.52507305F, -0.3949175F, -0.28444138F, -0.18477343F,
    -0.091050036F, 0.0F,        0.0795803F,   0.1609302F,  0.2461123F,   0.33791524F,
    0.44070983F,   0.562617F,   0.72295684F,  1.0F};

inline constexpr std::int64_t nf4_block = 64;    ///< weights that share a scale
inline constexpr std::int64_t nf4_scales = 256;  ///< scales that share a scale of their own

/// The nearest of the 16 values.
FRUGAL_INLINE std::uint8_t nf4_code(float value) {
  auto const above = std::upper_bound(nf4_values.begin(), nf4_values.end(), value);
  if (above == nf4_values.begin()) return 0;
  if (above == nf4_values.end()) return 15;
  auto const below = std::prev(above);
  return static_cast<std::uint8_t>((value - *below > *above - value ? above : below) -
                                   nf4_values.begin());
}

/// The 8 bits of a block's scale: its ratio to the largest scale of its 256. Ratios are powers of
/// two with a fraction, so that the error is relative and a block with an outlier does not spoil the
/// others. The steps are as fine as the smallest scale of the 256 allows: of ladder k, 2^k / 512 of
/// an octave. Scales below 2^-63 of the largest are rounded up to that.
struct Nf4Ratios {
  static constexpr std::size_t ladders = 8;
  static constexpr std::size_t steps = 256;

  /// Ladder by ladder, from 1 downwards.
  FRUGAL_INLINE static std::array<float, ladders * steps> const& all() {
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
  /// The finest ladder that reaches down to a ratio.
  FRUGAL_INLINE static std::uint8_t ladder(float least) {
    std::size_t found = 0;
    while (found + 1 < ladders && all()[found * steps + steps - 1] > least) ++found;
    return static_cast<std::uint8_t>(found);
  }
  /// The nearest step of a ladder.
  FRUGAL_INLINE static std::uint8_t step(std::uint8_t ladder, float ratio) {
    float const* const first = all().data() + ladder * steps;
    float const* const below = std::lower_bound(first, first + steps, ratio, std::greater<>());
    if (below == first) return 0;
    if (below == first + steps) return steps - 1;
    return static_cast<std::uint8_t>((*(below - 1) - ratio < ratio - *below ? below - 1 : below) -
                                     first);
  }
};

}  // namespace detail

/// A weight in 4 bits: blocks of 64 values with a scale each, and the scales in 8 bits, in blocks of
/// 256 as ratios to their largest. 0.516 byte a weight. A child of its layer, so that it moves with
/// it; its buffers are fixed, and in no checkpoint. Every processor packs to the same bits.
///
/// Errors  ModuleError for a weight that is NaN or infinite in FP32.
class Nf4Weight : public torch::nn::Module,
                  public detail::KeepsTypes,
                  public detail::ComputesUnseen {
 public:
  FRUGAL_INLINE explicit Nf4Weight(at::Tensor const& weight)
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
        steps.mutable_data_ptr<std::uint8_t>()[i] =
            detail::Nf4Ratios::step(ladder, largest[i] / top);
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

  std::vector<at::Tensor> parts() { return {codes_, steps_, ladders_, tops_}; }
  std::vector<std::int64_t> const& sizes() const { return sizes_; }

  /// The weight that the parts stand for.
  FRUGAL_INLINE static at::Tensor unpack(std::vector<at::Tensor> const& parts,
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

 private:
  FRUGAL_INLINE static at::Tensor table_on(at::Device device, float const* values,
                                           std::size_t count) {
    return at::from_blob(const_cast<float*>(values), {static_cast<std::int64_t>(count)}, at::kFloat)
        .to(device);
  }

  // On other devices by operators; there is no kernel of ours.
  FRUGAL_INLINE static at::Tensor unpack_there(at::Tensor const& codes, at::Tensor const& scales,
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

  std::vector<std::int64_t> sizes_;
  at::Tensor codes_, steps_, ladders_, tops_;
};

namespace detail {

/// x W^T of a packed W. Neither pass keeps the weight: the backward pass unpacks it again.
struct Nf4Product : torch::autograd::Function<Nf4Product> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor const& input,
                            at::Tensor const& codes, at::Tensor const& steps,
                            at::Tensor const& ladders, at::Tensor const& tops, std::int64_t rows) {
    context->save_for_backward({codes, steps, ladders, tops});
    context->saved_data["rows"] = rows;
    context->saved_data["columns"] = input.size(-1);
    std::array<std::int64_t, 2> const sizes{rows, input.size(-1)};
    return product(input,
                   Nf4Weight::unpack({codes, steps, ladders, tops}, sizes, type_of(input)).t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list const& gradients) {
    std::array<std::int64_t, 2> const sizes{context->saved_data["rows"].toInt(),
                                            context->saved_data["columns"].toInt()};
    at::Tensor const& gradient = gradients[0];
    at::Tensor const weight =
        Nf4Weight::unpack(context->get_saved_variables(), sizes, gradient.scalar_type());
    return {product(gradient, weight), {}, {}, {}, {}, {}};
  }

 private:
  // Autocast would convert an FP32 weight once more.
  static at::ScalarType type_of(at::Tensor const& input) {
    auto const device = input.device().type();
    return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                     : input.scalar_type();
  }
  // matmul of three dimensions may become a batch of small products.
  static at::Tensor product(at::Tensor const& rows, at::Tensor const& weight) {
    std::vector<std::int64_t> sizes = rows.sizes().vec();
    sizes.back() = weight.size(1);
    return rows.reshape({-1, rows.size(-1)}).mm(weight).view(sizes);
  }
};

/// Computes a linear layer with its packed weight.
class Nf4Hook : public LayerHook {
 public:
  explicit Nf4Hook(std::shared_ptr<Nf4Weight> packed) : packed_(std::move(packed)) {}
  Place place() const override { return Place::compute; }
  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    // What the operator refuses it refuses in its own words.
    if (call.input.dim() == 0 || call.input.size(-1) != packed_->sizes().back()) return rest(call);
    auto const parts = packed_->parts();
    at::Tensor const product = Nf4Product::apply(call.input, parts[0], parts[1], parts[2], parts[3],
                                                 packed_->sizes().front());
    return call.bias.defined() ? product + call.bias : product;
  }

 private:
  std::shared_ptr<Nf4Weight> packed_;
};

inline constexpr char const* packed_child = "nf4";

/// Packs a linear layer's weight, which is no parameter any more: one without memory would get it
/// back when the module is moved, and its numbers would be saved and loaded, although it has none.
FRUGAL_INLINE void pack_weight(torch::nn::Module& layer, at::Tensor const& weight) {
  auto const packed = layer.register_module(packed_child, std::make_shared<Nf4Weight>(weight));
  drop_weight(layer, weight);
  intercept(weight, std::make_shared<Nf4Hook>(packed));
}

}  // namespace detail
}  // namespace frugal
