// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// A layer whose outputs are looked at.
struct WatchedLayer {
  std::string name;
  at::Tensor weight;
  LayerCall::Operator op = LayerCall::Operator::linear;
  std::int64_t width = 0;  ///< of its output: features, or channels of a convolution
};

/// The layer of this name, or the one with the weight of this name. SettingsError if there is none
/// of a kind that can be intercepted; `whose` is what the error calls the module.
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

/// While it lives, keeps what some layers give in this thread. What a layer gives is what a hook
/// in PyTorch gets: an operator that writes into it afterwards, such as a ReLU in place, changes it.
class LayerOutputs {
 public:
  FRUGAL_INLINE explicit LayerOutputs(std::vector<WatchedLayer> const& layers) : layers_(&layers) {
    hooks_.reserve(layers.size());
    for (WatchedLayer const& layer : layers) {
      hooks_.push_back(std::make_shared<Hook>(layer.op));
      intercept(layer.weight, hooks_.back());
    }
  }
  LayerOutputs(LayerOutputs const&) = delete;
  LayerOutputs& operator=(LayerOutputs const&) = delete;
  ~LayerOutputs() {
    for (std::size_t i = 0; i < hooks_.size(); ++i) release((*layers_)[i].weight, *hooks_[i]);
  }

  /// ModuleError if the layer was not called, or more than once: which call would be meant?
  FRUGAL_INLINE at::Tensor const& of(std::size_t layer) const {
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

 private:
  struct Hook final : LayerHook {
    explicit Hook(LayerCall::Operator which) : op(which) {}
    Place place() const override { return Place::observe; }
    at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
      at::Tensor made = rest(call);
      // A weight may be tied to a layer of another kind, and a module shared by two threads.
      if (call.op == op && std::this_thread::get_id() == thread) {
        output = made;
        ++calls;
      }
      return made;
    }

    LayerCall::Operator op;
    std::thread::id thread = std::this_thread::get_id();
    at::Tensor output{};
    int calls = 0;
  };

  std::vector<WatchedLayer> const* layers_;
  std::vector<std::shared_ptr<Hook>> hooks_;
};

}  // namespace frugal::detail
