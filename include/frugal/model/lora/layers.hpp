// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/model/lora/adapter.hpp>

namespace frugal::detail {

/// A layer that can be adapted.
struct AdaptableLayer {
  std::string name{};
  std::shared_ptr<torch::nn::Module> module{};
  LayerCall::Operator op{};
  at::Tensor weight{};
  bool grouped = false;  ///< a convolution with groups
};

/// Those of a module whose members are registered: register_members().
std::vector<AdaptableLayer> adaptable_layers(torch::nn::Module const& root);

/// An adapter of a module, and its layer.
struct FoundAdapter {
  AdaptableLayer layer;
  std::shared_ptr<LoraAdapter> adapter;
};

inline constexpr char const* adapters_child = "lora";

/// The child of a layer that holds its adapters; null without.
std::shared_ptr<torch::nn::Module> adapters_of(torch::nn::Module const& layer);

/// All adapters of a module, those with a name if it is not empty.
std::vector<FoundAdapter> find_adapters(torch::nn::Module const& root, std::string_view name = {});

/// One of these that is merged into a tensor's memory, whatever names or views it has; null without.
FoundAdapter const* merged_into(at::Tensor const& tensor, std::vector<FoundAdapter> const& all);

/// The layer computes without this adapter, and has it no more.
void detach_adapter(FoundAdapter const& from);

/// Whether a layer's name is `target` or ends in it, as in PEFT, or fits it as a pattern.
bool is_target(std::string_view name, std::string_view target);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/layers.ipp>
#endif
