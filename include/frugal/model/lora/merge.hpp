// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/error.hpp>
#include <frugal/model/finite_weight.hpp>
#include <frugal/model/lora/adapter.hpp>

namespace frugal {

namespace detail {

std::vector<FoundAdapter> require_adapters(torch::nn::Module& module, std::string_view name,
                                           char const* where);

void require_mergeable(torch::nn::Module const& root, FoundAdapter const& adapted,
                       std::vector<AdaptableLayer> const& layers);

/// The adapter that keeps a layer's weight from before the first of its adapters was merged; null if
/// none is.
std::shared_ptr<LoraAdapter> keeper_of(std::vector<FoundAdapter> const& all,
                                       AdaptableLayer const& layer);

/// StateError if a weight has other numbers than its merges made: what is kept is then of another base.
void require_merged(std::vector<FoundAdapter> const& all, char const* where);

/// One merge of a layer, and how it is undone.
struct LayerMerge {
  std::shared_ptr<LoraAdapter> adapter, keeper;
  at::Tensor weight, before;  ///< `before`: only if other adapters were merged already

  void undo() const;
};

}  // namespace detail

/// Adds the active adapters, or those with a name, to their layers' weights, in FP32 at least, so that the
/// module computes without them, at the speed of the base. They stay, and keep the weights' bits for unmerge(): the memory of
/// the adapted weights once more. Merged adapters are not trained, and save_weights() leaves them out.
/// SettingsError for a quantized base, in 4 bits or 8, and for a weight that another layer has as
/// well, and for a part of a layer's adapters while one with Dora stays active; WeightRangeError for a sum beyond the numbers of the weight's type; StateError for a weight that
/// was changed since an earlier merge. Then nothing has changed.
template <class Module>
void merge(Module& module, std::string_view name = {}) {
  torch::nn::Module& root = base_module(module);
  detail::register_members(root);
  static_cast<void>(detail::require_adapters(root, name, "merge"));
  auto const all = detail::find_adapters(root);
  auto const layers = detail::adaptable_layers(root);
  auto const merges = [&](detail::FoundAdapter const& each) {
    bool const chosen = name.empty() ? each.adapter->active : each.adapter->settings().name == name;
    return chosen && !each.adapter->is_merged();
  };
  for (detail::FoundAdapter const& each : all) {
    if (merges(each)) detail::require_mergeable(root, each, layers);
  }
  for (detail::FoundAdapter const& each : all) {
    LoraSettings const& left = each.adapter->settings();
    if (merges(each) || each.adapter->is_merged() || !each.adapter->active || !left.dora) continue;
    auto const beside = [&](detail::FoundAdapter const& other) {
      return merges(other) && other.layer.module == each.layer.module;
    };
    if (std::ranges::none_of(all, beside)) continue;
    throw SettingsError({.what = "an adapter of '" + each.layer.name + "' cannot be merged alone",
                         .where = "merge",
                         .why = "the adapter '" + left.name +
                                "' uses Dora, and would scale the other one with the weight",
                         .fix = "Merge all at once, or choose one with use_adapter first."});
  }
  detail::require_merged(all, "merge");
  at::NoGradGuard const no_gradients;
  std::vector<detail::LayerMerge> done;
  auto const merge_one = [&](detail::FoundAdapter const& each) {
    at::Tensor const& weight = each.layer.weight;
    auto const keeper = detail::keeper_of(all, each.layer);
    at::Tensor const before = keeper ? weight.detach().clone() : at::Tensor();
    auto const reach = each.adapter->merge_into(weight, keeper ? keeper->kept() : at::Tensor());
    if (reach) {
      throw WeightRangeError(
          {.what = "the adapter '" + each.adapter->settings().name + "' of '" + each.layer.name +
                   "' cannot be merged",
           .where = "merge",
           .why = "the sum has " + std::to_string(*reach) + ", and the weight's type, " +
                  at::toString(weight.scalar_type()) + ", ends at " +
                  std::to_string(detail::largest_number(weight.scalar_type())),
           .fix = "Merge in a module of a wider type, or use the adapter without merging it."});
    }
    done.push_back({each.adapter, keeper ? keeper : each.adapter, weight, before});
    done.back().keeper->note_merged(weight);
  };
  try {
    for (detail::FoundAdapter const& each : all) {
      if (merges(each)) merge_one(each);
    }
  } catch (...) {
    for (detail::LayerMerge const& each : done | std::views::reverse) each.undo();
    throw;
  }
}

/// Undoes every merge() since the last: the weights have the bits that they had before the first,
/// whatever adapters were merged, and in whatever order. SettingsError for a weight that has been
/// quantized since, StateError for one that was trained, loaded or written to in another way; then
/// nothing has changed.
template <class Module>
void unmerge(Module& module) {
  auto const all = detail::require_adapters(base_module(module), {}, "unmerge");
  for (detail::FoundAdapter const& each : all) {
    if (!each.adapter->is_merged() || !detail::is_dropped(each.layer.weight)) continue;
    throw SettingsError({.what = "the adapter of '" + each.layer.name + "' cannot be unmerged",
                         .where = "unmerge",
                         .why = "the layer's weight was quantized after the merge",
                         .fix = "Call unmerge(module) before quantize, or load the module again."});
  }
  detail::require_merged(all, "unmerge");
  at::NoGradGuard const no_gradients;
  for (detail::FoundAdapter const& each : all) {
    if (each.adapter->kept().defined()) each.layer.weight.copy_(each.adapter->kept());
    each.adapter->forget_merge();
  }
}

/// Only the adapters with this name take part in the module's calls; none for "". SettingsError for a
/// module into which another adapter is merged.
template <class Module>
void use_adapter(Module& module, std::string_view name) {
  torch::nn::Module& root = base_module(module);
  if (!name.empty()) static_cast<void>(detail::require_adapters(root, name, "use_adapter"));
  for (detail::FoundAdapter const& each : detail::find_adapters(root)) {
    std::string const& merged = each.adapter->settings().name;
    if (!each.adapter->is_merged() || merged == name) continue;
    throw SettingsError({.what = "the adapter '" + merged + "' of '" + each.layer.name +
                                 "' is merged, and cannot be left out",
                         .where = "use_adapter",
                         .why = "the layer's weight includes it",
                         .fix = "Call unmerge(module) first."});
  }
  for (detail::FoundAdapter const& each : detail::find_adapters(root)) {
    each.adapter->active = each.adapter->settings().name == name;
  }
}

/// Removes the adapters, merged or not, and lets the base be trained again, also what Freeze fixed, but
/// not what required no gradient before. A merged weight stays, and so does a packed one (Base<NF4>), which is not trained. The module may be
/// adapted again.
template <class Module>
void remove_adapters(Module& module) {
  torch::nn::Module& root = base_module(module);
  for (detail::FoundAdapter const& each : detail::require_adapters(root, {}, "remove_adapters")) {
    detail::detach_adapter(each);
  }
  for (at::Tensor const& tensor : root.parameters()) {
    if (!tensor.defined()) continue;
    detail::restore_fixed(tensor);
    // Else the file of a later adapter would not have what is trained beside it.
    bool const is_head = !detail::heads().find(tensor).empty();
    if (is_head) detail::heads().change(tensor, [](std::string& owner) { owner.clear(); });
  }
  for (detail::StatisticsLayer const& each : detail::statistics_layers(root)) {
    for (at::Tensor const& tensor : each.statistics) unfix_tensor(tensor);
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/merge.ipp>
#endif
