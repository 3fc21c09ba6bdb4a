// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/dropped_weight.hpp>
#include <frugal/model/lora/adapter.hpp>
#include <frugal/model/lora/layers.hpp>
#include <frugal/model/lora/nf4.hpp>

namespace frugal {

namespace detail {

FRUGAL_INLINE std::vector<FoundAdapter> require_adapters(torch::nn::Module& module,
                                                         std::string_view name, char const* where) {
  std::vector<FoundAdapter> found = find_adapters(module, name);
  if (!found.empty()) return found;
  throw SettingsError(
      {.what = name.empty() ? std::string("the module has no adapter")
                            : "the module has no adapter '" + std::string(name) + "'",
       .where = where,
       .why = "adapt(module, Lora<...>{}) or a fit adds them",
       .fix = "Adapt the module first, or give the name of an adapter that it has."});
}

FRUGAL_INLINE void require_mergeable(FoundAdapter const& adapted,
                                     std::vector<AdaptableLayer> const& layers) {
  auto const refuse = [&](std::string why, std::string fix) {
    throw SettingsError({.what = "the adapter of '" + adapted.layer.name + "' cannot be merged",
                         .where = "merge",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (is_dropped(adapted.layer.weight)) {
    bool const in_4_bits = adapted.layer.module->named_children().contains(packed_child);
    refuse(in_4_bits ? "the layer's weight is packed in 4 bits (Base<NF4>)"
                     : "the layer's weight is quantised",
           "Save the adapter, and load and merge it on the base in floating point.");
  }
  for (AdaptableLayer const& other : layers) {
    if (other.module == adapted.layer.module || !other.weight.is_same(adapted.layer.weight))
      continue;
    refuse("'" + other.name + "' has the same weight, and would be changed",
           "Use the module with its adapters, or give the layers a weight each.");
  }
}

/// A layer's weight before the first of its adapters was merged; undefined if none is.
FRUGAL_INLINE at::Tensor kept_weight(std::vector<FoundAdapter> const& all,
                                     AdaptableLayer const& layer) {
  for (FoundAdapter const& each : all) {
    if (each.layer.module == layer.module && each.adapter->kept().defined()) {
      return each.adapter->kept();
    }
  }
  return {};
}

}  // namespace detail

/// Adds the active adapters to their layers' weights, in FP32 at least, so that the module computes without
/// them, at the speed of the base. They stay, and keep the weights' bits for unmerge(): the memory of
/// the adapted weights once more. Merged adapters are not trained, and save_weights() leaves them out.
/// SettingsError for a quantised base, in 4 bits or 8, and for a weight that another layer has as
/// well; then nothing has changed.
template <class Module>
void merge(Module& module) {
  torch::nn::Module& root = base_module(module);
  detail::register_members(root);
  auto const all = detail::require_adapters(root, {}, "merge");
  auto const layers = detail::adaptable_layers(root);
  auto const merges = [](detail::FoundAdapter const& each) {
    return each.adapter->active && !each.adapter->is_merged();
  };
  for (detail::FoundAdapter const& each : all) {
    if (merges(each)) detail::require_mergeable(each, layers);
  }
  for (detail::FoundAdapter const& each : all) {
    if (!merges(each)) continue;
    each.adapter->merge_into(each.layer.weight, detail::kept_weight(all, each.layer));
  }
}

/// Undoes every merge() since the last: the weights have the bits that they had before the first,
/// whatever adapters were merged, and in whatever order. SettingsError for a weight that has been
/// quantised since; then nothing has changed.
template <class Module>
void unmerge(Module& module) {
  auto const all = detail::require_adapters(base_module(module), {}, "unmerge");
  for (detail::FoundAdapter const& each : all) {
    if (!each.adapter->is_merged() || !detail::is_dropped(each.layer.weight)) continue;
    throw SettingsError({.what = "the adapter of '" + each.layer.name + "' cannot be unmerged",
                         .where = "unmerge",
                         .why = "the layer's weight was quantised after the merge",
                         .fix = "Call unmerge(module) before quantise, or load the module again."});
  }
  at::NoGradGuard const no_gradients;
  for (detail::FoundAdapter const& each : all) {
    if (each.adapter->kept().defined()) each.layer.weight.copy_(each.adapter->kept());
    each.adapter->forget_merge();
  }
}

/// Only the adapters with this name take part in the module's calls; none for "".
template <class Module>
void use_adapter(Module& module, std::string_view name) {
  torch::nn::Module& root = base_module(module);
  if (!name.empty()) static_cast<void>(detail::require_adapters(root, name, "use_adapter"));
  for (detail::FoundAdapter const& each : detail::find_adapters(root)) {
    each.adapter->active = each.adapter->settings().name == name;
  }
}

/// Removes the adapters, merged or not, and lets the base be trained again, also what Freeze fixed. A
/// merged weight stays, and so does a packed one (Base<NF4>), which is not trained. The module may be
/// adapted again.
template <class Module>
void remove_adapters(Module& module) {
  torch::nn::Module& root = base_module(module);
  for (detail::FoundAdapter const& each : detail::require_adapters(root, {}, "remove_adapters")) {
    if (auto const hooks = detail::Interceptions::all().of(each.layer.weight)) {
      for (auto const& hook : *hooks) {
        auto const* const lora = dynamic_cast<detail::LoraHook const*>(hook.get());
        if (lora != nullptr && lora->is_of(*each.adapter)) release(each.layer.weight, *hook);
      }
    }
    if (detail::adapters_of(*each.layer.module)) {
      each.layer.module->unregister_module(detail::adapters_child);
    }
  }
  for (at::Tensor const& tensor : root.parameters()) {
    if (!tensor.defined() || !is_fixed(tensor)) continue;
    unfix_tensor(tensor);
    tensor.set_requires_grad(true);
  }
  for (detail::StatisticsLayer const& each : detail::statistics_layers(root)) {
    for (at::Tensor const& tensor : each.statistics) unfix_tensor(tensor);
  }
}

}  // namespace frugal
