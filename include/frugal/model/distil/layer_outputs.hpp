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
#include <vector>

#include <frugal/core/libtorch/interception.hpp>

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
WatchedLayer watched_layer(torch::nn::Module const& module, std::string const& name,
                           std::string const& whose);

/// While it lives, keeps what some layers give in this thread. What a layer gives is what a hook
/// in PyTorch gets: an operator that writes into it afterwards, such as a ReLU in place, changes it.
class LayerOutputs {
 public:
  explicit LayerOutputs(std::vector<WatchedLayer> const& layers);
  LayerOutputs(LayerOutputs const&) = delete;
  LayerOutputs& operator=(LayerOutputs const&) = delete;
  ~LayerOutputs() {
    for (std::size_t i = 0; i < hooks_.size(); ++i) release((*layers_)[i].weight, *hooks_[i]);
  }

  /// ModuleError if the layer was not called, or more than once: which call would be meant?
  at::Tensor const& of(std::size_t layer) const;

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

#ifndef FRUGAL_COMPILED
#include <frugal/model/distil/layer_outputs.ipp>
#endif
