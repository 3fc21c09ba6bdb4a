// SPDX-License-Identifier: Apache-2.0
// Shapes: M rows of the input, K inputs and N outputs of the layer.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/acting.hpp>
#include <frugal/core/libtorch/interception.hpp>

namespace frugal::detail {

/// A matrix in few bits, and the scale of each row, of each column, or of the whole.
struct Quantized {
  at::Tensor values, scales;
  Quantized t() const { return {values.t(), scales.dim() == 2 ? scales.t() : scales}; }
};

void refuse_second_derivative(char const* format);

/// The product of a linear layer, and those of its two gradients, in a format of few bits with
/// scales that follow the numbers of the moment. A format has
///
///   static constexpr char const* name
///   static constexpr std::int64_t multiple    of which both sides of a weight must be one
///   bool takes(input, weight)                 whether its kernels take a layer's shapes
///   Quantized rows(matrix), columns(matrix)   a scale for each row, for each column, or for all
///   Quantized gradient_rows(matrix), gradient_columns(matrix)    of the gradient of the output
///   at::Tensor multiply(Quantized const& a_MK, Quantized const& b_KN, sizes of the result)
///
/// Saves the input in few bits, where autograd saves it in FP32.
template <class Format>
struct ScaledLinear : torch::autograd::Function<ScaledLinear<Format>> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor matrix(at::Tensor const& tensor) {
    return tensor.reshape({-1, tensor.size(-1)}).contiguous();
  }

  static at::Tensor output(at::Tensor const& input, at::Tensor const& input_MK,
                           at::Tensor const& weight_NK) {
    std::vector<std::int64_t> sizes = input.sizes().vec();
    sizes.back() = weight_NK.size(0);
    return Format::multiply(Format::rows(input_MK), Format::rows(weight_NK).t(), sizes);
  }

  static at::Tensor forward(Context* context, at::Tensor const& input, at::Tensor const& weight_NK,
                            bool trains_weight) {
    at::Tensor const input_MK = matrix(input);
    Tensors kept{weight_NK};
    if (trains_weight) {
      Quantized const columns = Format::columns(input_MK);
      kept.insert(kept.end(), {columns.values, columns.scales});
    }
    context->save_for_backward(std::move(kept));
    context->saved_data["sizes"] = input.sizes();
    return output(input, input_MK, weight_NK.contiguous());
  }

  static Tensors backward(Context* context, Tensors const& gradients) {
    refuse_second_derivative(Format::name);
    Tensors const kept = context->get_saved_variables();
    at::Tensor const gradient_MN = matrix(gradients[0]);
    at::Tensor of_input, of_weight;
    if (context->needs_input_grad(0)) {
      of_input = Format::multiply(Format::gradient_rows(gradient_MN),
                                  Format::columns(kept[0].contiguous()),
                                  context->saved_data["sizes"].toIntVector());
    }
    if (context->needs_input_grad(1)) {
      Quantized const columns_MK{kept[1], kept[2]};
      of_weight = Format::multiply(Format::gradient_columns(gradient_MN).t(), columns_MK,
                                   kept[0].sizes().vec());
    }
    return {of_input, of_weight, at::Tensor()};
  }
};

/// Computes a linear layer in a format while its owner acts.
template <class Format>
class ScaledLayer final : public LayerHook {
 public:
  explicit ScaledLayer(void const* owner) : owner_(owner) {}

  Place place() const override { return Place::compute; }

  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    at::Tensor const& weight = call.weight;
    bool const plain = acting != owner_ || call.op != LayerCall::Operator::linear ||
                       weight.scalar_type() != at::kFloat ||
                       call.input.scalar_type() != at::kFloat || call.input.numel() == 0 ||
                       !Format::takes(call.input, weight);
    if (plain) return rest(call);
    at::Tensor output;
    if (at::GradMode::is_enabled() && (weight.requires_grad() || call.input.requires_grad())) {
      output = ScaledLinear<Format>::apply(call.input, weight, weight.requires_grad());
    } else {
      using Product = ScaledLinear<Format>;
      output = Product::output(call.input, Product::matrix(call.input), weight.contiguous());
    }
    return call.bias.defined() ? output.add_(call.bias) : output;
  }

 private:
  void const* owner_;
};

/// The linear layers of a module whose sides are multiples of a number; a shared weight once.
std::vector<at::Tensor> linear_weights(torch::nn::Module& module, std::int64_t multiple);

std::string no_scaled_layers(char const* format, std::int64_t multiple);

/// The layers of a module that compute in a format, while this lives and acts.
class ScaledLayers {
 public:
  template <class Format>
  ScaledLayers(std::type_identity<Format>, torch::nn::Module& module)
      : weights_(linear_weights(module, Format::multiple)),
        hook_(std::make_shared<ScaledLayer<Format>>(this)) {
    for (at::Tensor const& weight : weights_) intercept(weight, hook_);
  }
  ScaledLayers(ScaledLayers const&) = delete;
  ScaledLayers& operator=(ScaledLayers const&) = delete;
  ~ScaledLayers() {
    for (at::Tensor const& weight : weights_) release(weight, *hook_);
  }

  bool empty() const { return weights_.empty(); }
  Acting act() const { return Acting(this); }

 private:
  std::vector<at::Tensor> weights_;
  std::shared_ptr<LayerHook> hook_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/precision/scaled_linear.ipp>
#endif
