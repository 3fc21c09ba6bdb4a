// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora/merge.hpp>

#include <frugal/inline.hpp>
#include <frugal/model/lora/nf4.hpp>

#include <utility>

namespace frugal::detail {

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

FRUGAL_INLINE void require_mergeable(torch::nn::Module const& root, FoundAdapter const& adapted,
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
                     : "the layer's weight is quantized",
           "Save the adapter, and load and merge it on the base in floating point.");
  }
  for (AdaptableLayer const& other : layers) {
    if (other.module == adapted.layer.module ||
        !TensorPlaceCounts::overlap(other.weight, adapted.layer.weight)) {
      continue;
    }
    refuse("'" + other.name + "' has the same weight, and would be changed",
           "Use the module with its adapters, or give the layers a weight each.");
  }
  // Of modules that take no adapter, too.
  auto const look = [&](std::string const& prefix, torch::nn::Module const& module) {
    if (&module == adapted.layer.module.get()) return;
    for (auto const& item : module.named_parameters(/*recurse=*/false)) {
      if (!TensorPlaceCounts::overlap(item.value(), adapted.layer.weight)) continue;
      refuse("'" + prefix + item.key() + "' is the same tensor, and would be changed",
             "Use the module with its adapters, or give each a tensor of its own.");
    }
  };
  look("", root);
  for (auto const& item : root.named_modules("", /*include_self=*/false)) {
    look(item.key() + ".", *item.value());
  }
}

FRUGAL_INLINE std::shared_ptr<LoraAdapter> keeper_of(std::vector<FoundAdapter> const& all,
                                                     AdaptableLayer const& layer) {
  for (FoundAdapter const& each : all) {
    if (each.layer.module == layer.module && each.adapter->kept().defined()) return each.adapter;
  }
  return nullptr;
}

FRUGAL_INLINE void require_merged(std::vector<FoundAdapter> const& all, char const* where) {
  for (FoundAdapter const& each : all) {
    if (!each.adapter->kept().defined() || is_dropped(each.layer.weight)) continue;
    if (each.adapter->has_merged(each.layer.weight)) continue;
    throw StateError(
        {.what = "the weight of '" + each.layer.name + "' was changed after its adapter was merged",
         .where = where,
         .why = "the weight that was kept by merge is of the former one, and the adapter may be in "
                "neither",
         .fix = "Call remove_adapters(module), which leaves the weights as they are. Load the base "
                "and the adapter again if it is to be used apart."});
  }
}

FRUGAL_INLINE void LayerMerge::undo() const {
  weight.copy_(before.defined() ? before : adapter->kept());
  adapter->forget_merge();
  if (before.defined()) keeper->note_merged(weight);
}

}  // namespace frugal::detail
