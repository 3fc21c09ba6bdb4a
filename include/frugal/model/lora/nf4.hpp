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
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>

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
std::uint8_t nf4_code(float value);

/// The 8 bits of a block's scale: its ratio to the largest scale of its 256. Ratios are powers of
/// two with a fraction, so that the error is relative and a block with an outlier does not spoil the
/// others. The steps are as fine as the smallest scale of the 256 allows: of ladder k, 2^k / 512 of
/// an octave. Scales below 2^-63 of the largest are rounded up to that.
struct Nf4Ratios {
  static constexpr std::size_t ladders = 8;
  static constexpr std::size_t steps = 256;

  /// Ladder by ladder, from 1 downwards.
  static std::array<float, ladders * steps> const& all();
  /// The finest ladder that reaches down to a ratio.
  static std::uint8_t ladder(float least);
  /// The nearest step of a ladder.
  static std::uint8_t step(std::uint8_t ladder, float ratio);
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
  explicit Nf4Weight(at::Tensor const& weight);

  std::vector<at::Tensor> parts() { return {codes_, steps_, ladders_, tops_}; }
  std::vector<std::int64_t> const& sizes() const { return sizes_; }

  /// The weight that the parts stand for.
  static at::Tensor unpack(std::vector<at::Tensor> const& parts, at::IntArrayRef sizes,
                           at::ScalarType type);

 private:
  static at::Tensor table_on(at::Device device, float const* values, std::size_t count);

  // On other devices by operators; there is no kernel of ours.
  static at::Tensor unpack_there(at::Tensor const& codes, at::Tensor const& scales,
                                 std::int64_t count, at::IntArrayRef sizes, at::ScalarType type);

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
void pack_weight(torch::nn::Module& layer, at::Tensor const& weight);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/nf4.ipp>
#endif
