// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora/layers.hpp>

#include <frugal/base/name_pattern.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::vector<AdaptableLayer> adaptable_layers(torch::nn::Module const& root) {
  using Operator = LayerCall::Operator;
  std::vector<AdaptableLayer> layers;
  for (auto const& item : root.named_modules("", /*include_self=*/false)) {
    torch::nn::Module* const module = item.value().get();
    AdaptableLayer layer{.name = item.key(), .module = item.value()};
    if (auto const* linear = dynamic_cast<torch::nn::LinearImpl*>(module)) {
      layer.op = Operator::linear;
      layer.weight = linear->weight;
    } else if (auto const* conv = dynamic_cast<torch::nn::Conv2dImpl*>(module)) {
      layer.op = Operator::conv2d;
      layer.weight = conv->weight;
      layer.grouped = conv->options.groups() != 1;
    } else if (auto const* table = dynamic_cast<torch::nn::EmbeddingImpl*>(module)) {
      layer.op = Operator::embedding;
      layer.weight = table->weight;
    } else {
      continue;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

FRUGAL_INLINE std::shared_ptr<torch::nn::Module> adapters_of(torch::nn::Module const& layer) {
  auto const children = layer.named_children();
  auto const* const found = children.find(adapters_child);
  return found == nullptr ? nullptr : *found;
}

FRUGAL_INLINE std::vector<FoundAdapter> find_adapters(torch::nn::Module const& root,
                                                      std::string_view name) {
  std::vector<FoundAdapter> found;
  for (AdaptableLayer const& layer : adaptable_layers(root)) {
    auto const all = adapters_of(*layer.module);
    if (!all) continue;
    for (auto const& child : all->children()) {
      auto adapter = std::dynamic_pointer_cast<LoraAdapter>(child);
      if (!adapter || (!name.empty() && adapter->settings().name != name)) continue;
      found.push_back({layer, std::move(adapter)});
    }
  }
  return found;
}

FRUGAL_INLINE FoundAdapter const* merged_into(at::Tensor const& tensor,
                                              std::vector<FoundAdapter> const& all) {
  auto const found = std::ranges::find_if(all, [&](FoundAdapter const& each) {
    return each.adapter->is_merged() && TensorPlaceCounts::overlap(each.layer.weight, tensor);
  });
  return found == all.end() ? nullptr : &*found;
}

FRUGAL_INLINE void detach_adapter(FoundAdapter const& from) {
  if (auto const hooks = Interceptions::all().of(from.layer.weight)) {
    for (auto const& hook : *hooks) {
      auto const* const lora = dynamic_cast<LoraHook const*>(hook.get());
      if (lora != nullptr && lora->is_of(*from.adapter)) release(from.layer.weight, *hook);
    }
  }
  auto const all = adapters_of(*from.layer.module);
  std::string const& name = from.adapter->settings().name;
  if (!all || !all->named_children().contains(name)) return;
  all->unregister_module(name);
  if (all->children().empty()) from.layer.module->unregister_module(adapters_child);
}

FRUGAL_INLINE bool is_target(std::string_view name, std::string_view target) {
  if (target.find('*') != std::string_view::npos) return matches_pattern(target, name);
  if (!name.ends_with(target)) return false;
  return name.size() == target.size() || name[name.size() - target.size() - 1] == '.';
}

}  // namespace frugal::detail
