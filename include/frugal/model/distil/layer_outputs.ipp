// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/distil/layer_outputs.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE WatchedLayer watched_layer(torch::nn::Module const& module, std::string const& name,
                                         std::string const& whose) {
  using Operator = LayerCall::Operator;
  std::string known;
  WatchedLayer found{.name = name, .weight = {}};
  bool embeds = false;
  for (auto const& item : module.named_modules("", /*include_self=*/false)) {
    auto const own = item.value()->named_parameters(/*recurse=*/false);
    at::Tensor const* weight = own.find("weight");
    // A quantised layer's weight is no parameter, and its layer is still found by it.
    if (auto const* const linear = item.value()->as<torch::nn::LinearImpl>())
      weight = &linear->weight;
    if (auto const* const conv = item.value()->as<torch::nn::Conv2dImpl>()) weight = &conv->weight;
    if (weight == nullptr || !weight->defined() || weight->dim() == 0) continue;
    known += " " + item.key();
    if (item.key() != name) continue;
    found.weight = *weight;
    embeds = item.value()->as<torch::nn::EmbeddingImpl>() != nullptr;
  }
  if (!found.weight.defined()) {
    auto const parameters = module.named_parameters();
    if (at::Tensor const* const weight = parameters.find(name)) found.weight = *weight;
  }
  std::int64_t const dims = found.weight.defined() ? found.weight.dim() : 0;
  if (dims != 1 && dims != 2 && dims != 4) {
    throw SettingsError(
        {.what = "the " + whose + " has no layer \"" + name + "\" whose output can be seen",
         .where = "Distil",
         .why = "its layers with a weight are:" + (known.empty() ? " none" : known),
         .fix = "Name a linear layer, a conv2d, an embedding or a layer_norm, as named_modules() "
                "does."});
  }
  found.op = dims == 1   ? Operator::layer_norm
             : dims == 4 ? Operator::conv2d
             : embeds    ? Operator::embedding
                         : Operator::linear;
  found.width = found.weight.size(embeds ? 1 : 0);
  return found;
}

FRUGAL_INLINE LayerOutputs::LayerOutputs(std::vector<WatchedLayer> const& layers)
    : layers_(&layers) {
  hooks_.reserve(layers.size());
  for (WatchedLayer const& layer : layers) {
    hooks_.push_back(std::make_shared<Hook>(layer.op));
    intercept(layer.weight, hooks_.back());
  }
}

FRUGAL_INLINE at::Tensor const& LayerOutputs::of(std::size_t layer) const {
  Hook const& hook = *hooks_[layer];
  if (hook.calls == 1) return hook.output;
  throw ModuleError({.what = "the layer \"" + (*layers_)[layer].name + "\" was called " +
                             std::to_string(hook.calls) + " times in a forward pass",
                     .where = "Distil",
                     .why = hook.calls == 0
                                ? "what is called instead of the layer cannot be seen: a fused "
                                  "operator, or another weight"
                                : "its outputs cannot be distinguished",
                     .fix = "Name a layer that every forward pass calls once."});
}

}  // namespace frugal::detail
