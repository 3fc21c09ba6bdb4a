// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <typeinfo>
#include <vector>

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/model/quantize/quantized_weight.hpp>

namespace frugal {

namespace detail {

/// What a BatchNorm does to each channel in evaluation mode, in FP32 at least, as LibTorch computes it.
struct ChannelMap {
  at::Tensor factor, shift;
};

template <class Norm>
ChannelMap map_of(Norm const& norm) {
  at::ScalarType const type = at::promote_types(norm.running_var.scalar_type(), at::kFloat);
  at::Tensor factor = norm.running_var.to(type).add(norm.options.eps()).rsqrt();
  if (norm.weight.defined()) factor.mul_(norm.weight);
  at::Tensor shift = norm.running_mean.to(type).mul(factor).neg_();
  if (norm.bias.defined()) shift.add_(norm.bias);
  return {factor, shift};
}

/// Takes the place of a BatchNorm1d that was folded into a Linear.
///
/// A BatchNorm1d normalizes dimension 1, which is the Linear's outputs where these are rows [B, C]. Of
/// positions [B, T, C] it would be T: fold_batch_norm() does not know which of the two a module is
/// given, if T and C are equal, so that this refuses them.
class FoldedIntoRows : public torch::nn::IdentityImpl {
 public:
  // Not static: AnyModule calls a member.
  at::Tensor forward(at::Tensor const& rows);
};

/// Applies the map to a layer's outputs. False if its weight cannot take it: another layer has it
/// too, an adapter adds to the outputs, or its type ends before the product.
template <class Layer>
bool fold_into(Layer& layer, ChannelMap const& map, TensorPlaceCounts const& places) {
  bool const fits = layer.weight.size(0) == map.factor.size(0);
  if (!fits || places.shared(layer.weight) || places.shared(layer.bias)) return false;
  at::ScalarType const type = layer.weight.scalar_type();
  at::Tensor const bias =
      layer.bias.defined() ? layer.bias.mul(map.factor).add_(map.shift) : map.shift;
  if (beyond_range(bias, type)) return false;
  auto const children = layer.children();
  if (!children.empty()) {
    auto const quantized = std::dynamic_pointer_cast<Int8Weight>(children.front());
    if (!quantized || children.size() != 1) return false;
    quantized->multiply_outputs(map.factor);
  } else {
    std::vector<std::int64_t> along(static_cast<std::size_t>(layer.weight.dim()), 1);
    along[0] = -1;
    at::Tensor const weight = layer.weight.mul(map.factor.view(along));
    if (beyond_range(weight, type)) return false;
    layer.weight.copy_(weight);
  }
  if (layer.bias.defined()) {
    layer.bias.copy_(bias);
  } else {
    layer.bias = bias.detach().to(type, /*non_blocking=*/false, /*copy=*/true);
    layer.bias.set_requires_grad(layer.weight.requires_grad());
    own_parameters(layer)["bias"] = layer.bias;
    layer.options.bias(true);
  }
  return true;
}

template <class Layer, class Norm>
bool fold_pair(torch::nn::Module& first, torch::nn::Module& second,
               TensorPlaceCounts const& places) {
  // A class that derives from one of them may compute something else.
  if (typeid(first) != typeid(Layer) || typeid(second) != typeid(Norm)) return false;
  auto* const layer = first.as<Layer>();
  auto* const norm = second.as<Norm>();
  if (layer == nullptr || norm == nullptr || !norm->running_mean.defined()) return false;
  return fold_into(*layer, map_of(*norm), places);
}

int fold_in_sequence(torch::nn::SequentialImpl& layers, TensorPlaceCounts const& places);

}  // namespace detail

/// Folds each BatchNorm that follows a Conv2d, or a Linear on rows, in a Sequential into that
/// layer: its running statistics become part of weight and bias, and an Identity takes its place.
/// For inference: the module computes in training mode what it computes in evaluation mode. Returns
/// how many it has folded. A layer whose weight or bias another one has as well stays as it is, and so do
/// classes that derive from a layer or from Sequential, and layers of 16 bits whose type ends before the folded weight. A
/// folded Linear takes rows [B, K] alone: its forward pass throws ShapeError for [B, T, K], of which
/// BatchNorm1d normalizes the positions T.
template <class Module>
int fold_batch_norm(Module& module) {
  at::NoGradGuard const no_gradients;
  detail::register_members(base_module(module));
  detail::TensorPlaceCounts const places(base_module(module));
  int folded = 0;
  base_module(module).apply([&](torch::nn::Module& part) {
    // A class that derives from it may call its layers in another order.
    auto* const layers = part.as<torch::nn::SequentialImpl>();
    if (layers != nullptr && typeid(part) == typeid(torch::nn::SequentialImpl)) {
      folded += detail::fold_in_sequence(*layers, places);
    }
  });
  return folded;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/fold_batch_norm.ipp>
#endif
