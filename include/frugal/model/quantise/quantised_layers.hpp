// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/model/quantise/quantised_weight.hpp>

namespace frugal::detail {

/// A layer with a weight that can be quantised.
struct WeightedLayer {
  std::string name;
  torch::nn::Module* module;
  at::Tensor weight;
};

/// The names under which a layer has its quantised weight, and what Qat gives it.
inline constexpr char const* quantised_child = "quantised";
inline constexpr char const* fake_child = "fake_quantised";

/// Whether the kernels compute it: one group, and padding in numbers.
bool is_plain(torch::nn::Conv2dImpl const& layer);

/// Linear layers and plain Conv2d ones, by name. Not those whose weight is not their own alone, by its
/// name or by its memory: another layer needs its numbers.
std::vector<WeightedLayer> weighted_layers(torch::nn::Module& root);

/// Computes a layer with its quantised weight.
class QuantisedLayer final : public LayerHook {
 public:
  explicit QuantisedLayer(std::shared_ptr<QuantisedWeight> weight) : weight_(std::move(weight)) {}

  Place place() const override { return Place::compute; }

  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    bool const known =
        call.op == LayerCall::Operator::linear || call.op == LayerCall::Operator::conv2d;
    if (!known) {
      // Of an embedding or another layer that was tied to it later: the weight itself has no numbers.
      LayerCall other = call;
      other.weight = weight_->weight();
      return rest(other);
    }
    // A gradient of the input passes through the weight: of adapters in earlier layers, for
    // example.
    bool const trains = at::GradMode::is_enabled() && call.input.requires_grad();
    bool const fits = call.input.scalar_type() == at::kFloat && call.input.numel() != 0;
    return trains || !fits ? weight_->plain(call) : weight_->compute(call);
  }

 private:
  std::shared_ptr<QuantisedWeight> weight_;
};

/// The layer computes with this weight while this lives.
class [[nodiscard]] TriedWeight {
 public:
  TriedWeight(WeightedLayer const& layer, std::shared_ptr<QuantisedWeight> weight)
      : weight_(layer.weight), hook_(std::make_shared<QuantisedLayer>(std::move(weight))) {
    intercept(weight_, hook_);
  }
  TriedWeight(TriedWeight const&) = delete;
  TriedWeight& operator=(TriedWeight const&) = delete;
  ~TriedWeight() { release(weight_, *hook_); }

 private:
  at::Tensor weight_;
  std::shared_ptr<LayerHook> hook_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/quantise/quantised_layers.ipp>
#endif
