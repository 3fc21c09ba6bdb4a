// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora.hpp>

#include <frugal/base/name_pattern.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/finite_weight.hpp>
#include <frugal/model/lora/nf4.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void FirstGradients::require(Parameters const& parameters, char const* policy) {
  std::string names;
  std::size_t count = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor const& each = parameters.tensors[i];
    if (!each.requires_grad() || each.grad().defined()) continue;
    if (++count <= 3) names += (names.empty() ? "'" : ", '") + parameters.names[i] + "'";
  }
  if (count == 0) return;
  if (count > 3) names += " and " + std::to_string(count - 3) + " more";
  throw ModuleError(
      {.what = "trained parameters get no gradient: " + names,
       .where = std::string(policy) + ", first step",
       .why = "the module's forward does not use them, or uses the weight of their layer in a way "
              "that cannot be intercepted",
       .fix = "Leave them out of the patterns, or freeze them. A layer must be called by its own "
              "forward, or by torch::linear, conv2d or embedding on its weight."});
}

FRUGAL_INLINE void refuse_adapter(std::string what, std::string where, std::string why,
                                  std::string fix) {
  throw SettingsError({.what = std::move(what),
                       .where = std::move(where),
                       .why = std::move(why),
                       .fix = std::move(fix)});
}

FRUGAL_INLINE std::shared_ptr<LoraAdapter> adapter_of(torch::nn::Module const& layer,
                                                      std::string const& name) {
  auto const all = adapters_of(layer);
  if (!all) return nullptr;
  auto const children = all->named_children();
  auto const* const found = children.find(name);
  return found == nullptr ? nullptr : std::dynamic_pointer_cast<LoraAdapter>(*found);
}

FRUGAL_INLINE void require_numbers(LoraSettings const& settings) {
  if (settings.rank < 1) {
    refuse_adapter("rank is " + std::to_string(settings.rank), "Lora",
                   "an adapter has a rank of 1 or more", "Give a number such as 8.");
  }
  if (!(settings.alpha > 0 && std::isfinite(settings.alpha))) {
    refuse_adapter("alpha is " + general(settings.alpha, 6), "Lora",
                   "the product is scaled by alpha / rank",
                   "Give a finite number above 0, such as the rank.");
  }
  if (!(settings.dropout >= 0 && settings.dropout < 1)) {
    refuse_adapter("dropout is " + general(settings.dropout, 6), "Lora",
                   "it is a share of the input that is set to 0",
                   "Give 0 or more, and less than 1.");
  }
}

FRUGAL_INLINE void require_adaptable(AdaptableLayer const& layer,
                                     std::vector<AdaptableLayer> const& all,
                                     LoraSettings const& settings) {
  if (layer.grouped) {
    refuse_adapter("Lora cannot adapt '" + layer.name + "'", "Lora",
                   "it is a convolution with groups, whose weight is no single matrix",
                   "Name the layers more closely: On<...> selects this one.");
  }
  if (layer.op == LayerCall::Operator::linear && !shows_products(layer.weight)) {
    refuse_adapter("Lora cannot adapt '" + layer.name + "'", "Lora",
                   "its weight is a view of another tensor or was made in c10::InferenceMode, and "
                   "the calls of such a Linear are not seen",
                   "Give the layer a weight of its own, and make the module outside of "
                   "InferenceMode; it may be called inside.");
  }
  if (settings.nf4 && layer.op != LayerCall::Operator::linear) {
    refuse_adapter("Base<NF4> cannot pack '" + layer.name + "'", "Lora",
                   "it is a convolution or an embedding, and only linear layers are packed",
                   "Name linear layers alone in On<...>, or remove Base<NF4>.");
  }
  for (AdaptableLayer const& other : all) {
    bool const shares = other.module != layer.module && other.weight.is_same(layer.weight);
    if (!shares || (other.op != layer.op && !settings.nf4 && !settings.pissa)) continue;
    refuse_adapter("Lora cannot adapt '" + layer.name + "' alone", "Lora",
                   "'" + other.name + "' has the same weight, and would be adapted or changed, too",
                   "Give the layers a weight each, or leave this one out of On<...>.");
  }
  auto const adapter = adapter_of(*layer.module, settings.name);
  if (adapter && !(adapter->settings() == settings)) {
    refuse_adapter("'" + layer.name + "' has an adapter '" + settings.name + "' of other settings",
                   "Lora", "its rank, its alpha or another option is not that of this recipe",
                   "Use the options it was made with, or give the new adapter an AdapterName.");
  }
  if (adapter && adapter->is_merged()) {
    refuse_adapter("the adapter '" + settings.name + "' of '" + layer.name + "' is merged", "Lora",
                   "the layer's weight includes it, and it would be added twice",
                   "Call unmerge(module) first.");
  }
  if (adapter) return;
  if (auto const others = adapters_of(*layer.module); others && settings.dora) {
    for (auto const& child : others->children()) {
      auto const other = std::dynamic_pointer_cast<LoraAdapter>(child);
      if (!other || !other->is_merged()) continue;
      refuse_adapter("Dora cannot adapt '" + layer.name + "'", "Lora",
                     "its weight includes the adapter '" + other->settings().name +
                         "', which is merged, and the magnitudes would be those of the sum",
                     "Call unmerge(module) first, or remove_adapters(module) to keep the sum.");
    }
  }
  if (settings.pissa && layer.op != LayerCall::Operator::linear) {
    refuse_adapter("Pissa cannot adapt '" + layer.name + "'", "Lora",
                   "it is a convolution or an embedding, and Pissa adapts Linear layers alone",
                   "Name Linear layers, or remove Pissa.");
  }
  if (settings.pissa && settings.rank > std::min(layer.weight.size(0), layer.weight.size(1))) {
    refuse_adapter("Pissa cannot give '" + layer.name + "' an adapter of rank " +
                       std::to_string(settings.rank),
                   "Lora",
                   "its weight has " +
                       std::to_string(std::min(layer.weight.size(0), layer.weight.size(1))) +
                       " singular values",
                   "Lower the rank, or leave the layer out of On<...>.");
  }
  bool const is_packed = layer.module->named_children().contains(packed_child);
  if (is_dropped(layer.weight) &&
      (settings.dora || settings.pissa || (settings.nf4 && !is_packed))) {
    refuse_adapter("'" + layer.name + "' has no weight in floating point", "Lora",
                   "it is quantized (Base<NF4>, quantize), and Dora, Pissa and Base<NF4> read it",
                   "Remove these options, or adapt the layer before it is quantized.");
  }
  if (settings.pissa || (settings.nf4 && !is_packed)) {
    bool const narrows = settings.nf4 && layer.weight.scalar_type() == at::kDouble;
    require_finite(narrows ? layer.weight.to(at::kFloat) : layer.weight, layer.name,
                   settings.pissa ? "Lora, Pissa" : "Lora, Base<NF4>");
  }
}

FRUGAL_INLINE void adapt_layer(AdaptableLayer const& layer, LoraSettings const& settings,
                               std::uint64_t seed) {
  auto all = adapters_of(*layer.module);
  if (!all) {
    all =
        layer.module->register_module(adapters_child, std::make_shared<torch::nn::Module>("Lora"));
  }
  std::shared_ptr<LoraAdapter> adapter = adapter_of(*layer.module, settings.name);
  if (!adapter) {
    adapter = std::make_shared<LoraAdapter>(settings, layer.op, layer.weight, layer.name, seed);
    if (settings.pissa) begin_with_singular_values(*adapter, layer.weight);
    bool const is_packed = layer.module->named_children().contains(packed_child);
    if (settings.nf4 && !is_packed) pack_weight(*layer.module, layer.weight);
    all->register_module(settings.name, adapter);
    adapter->train(layer.module->is_training());
  }
  // A layer may have been given another weight since.
  auto const hooks = Interceptions::all().of(layer.weight);
  bool const hooked = hooks && std::ranges::any_of(*hooks, [&](auto const& each) {
                        auto const* const lora = dynamic_cast<LoraHook const*>(each.get());
                        return lora != nullptr && lora->is_of(*adapter);
                      });
  if (!hooked) intercept(layer.weight, std::make_shared<LoraHook>(adapter));
}

FRUGAL_INLINE void fix_base(torch::nn::Module& module, Adaptation& all, std::string_view name,
                            std::vector<std::string_view> const& also_trained) {
  for (FoundAdapter const& each : find_adapters(module, name)) {
    for (at::Tensor const& own : each.adapter->parameters()) all.train(own);
  }
  for (at::Tensor const& tensor : parameters_named(module, also_trained)) {
    all.train(tensor);
    if (heads().find(tensor) == name) continue;
    heads().change(tensor, [&](std::string& owner) { owner = name; });
  }
  for (at::Tensor const& tensor : module.parameters()) {
    if (tensor.defined() && !all.trains(tensor)) keep_fixed(tensor);
  }
  // Of layers with parameters, these say whether the statistics are trained.
  for (StatisticsLayer const& each : statistics_layers(module)) {
    if (!each.parameters.empty()) continue;
    std::string const key = running_mean_of(each);
    auto const selects = [&](std::string_view pattern) { return matches_pattern(pattern, key); };
    bool const trained = std::ranges::any_of(also_trained, selects);
    for (at::Tensor const& tensor : each.statistics) {
      if (trained) all.update(tensor);
      if (!all.trains(tensor)) keep_fixed(tensor);
    }
  }
}

FRUGAL_INLINE void fix_base(torch::nn::Module& module,
                            std::vector<std::string_view> const& also_trained,
                            std::string_view name) {
  Adaptation all(module);
  auto const stays = [&](at::Tensor const& tensor) {
    if (tensor.requires_grad() && !is_fixed(tensor)) all.train(tensor);
  };
  for (FoundAdapter const& each : find_adapters(module)) {
    for (at::Tensor const& own : each.adapter->parameters()) stays(own);
  }
  for (at::Tensor const& each : module.parameters()) {
    if (each.defined() && !heads().find(each).empty()) stays(each);
  }
  auto const is_other = [&](FoundAdapter const& each) {
    return each.adapter->settings().name != name;
  };
  if (std::ranges::any_of(find_adapters(module), is_other)) {
    for (StatisticsLayer const& each : statistics_layers(module)) {
      for (at::Tensor const& tensor : each.statistics) {
        if (each.parameters.empty() && !is_fixed(tensor)) all.update(tensor);
      }
    }
  }
  fix_base(module, all, name, also_trained);
  all.keep();
}

FRUGAL_INLINE void require_parameters(torch::nn::Module& module,
                                      std::vector<std::string_view> const& patterns) {
  auto const names = module.named_parameters().keys();
  for (std::string_view const pattern : patterns) {
    auto const selects = [&](std::string const& name) { return matches_pattern(pattern, name); };
    if (std::ranges::any_of(names, selects)) continue;
    refuse_adapter("AlsoTrain<\"" + std::string(pattern) + "\"> selects no parameter", "Lora",
                   "the module has none with such a name", "Fix the pattern, or remove it.");
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void add_adapters(torch::nn::Module& module, LoraSettings const& settings,
                                std::vector<std::string_view> const& targets, std::uint64_t seed) {
  detail::require_numbers(settings);
  detail::register_members(module);
  std::vector<detail::AdaptableLayer> const all = detail::adaptable_layers(module);
  std::vector<detail::AdaptableLayer const*> chosen;
  std::vector<bool> used(targets.size());
  for (detail::AdaptableLayer const& layer : all) {
    bool takes = false;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (detail::is_target(layer.name, targets[i])) used[i] = takes = true;
    }
    if (takes) chosen.push_back(&layer);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (used[i]) continue;
    std::string known;
    for (detail::AdaptableLayer const& layer : all) known += " " + layer.name;
    detail::refuse_adapter("On<\"" + std::string(targets[i]) + "\"> selects no layer", "Lora",
                           "the module's Linear, Conv2d and Embedding layers are:" +
                               (known.empty() ? std::string(" (none)") : known),
                           "Fix the name.");
  }
  for (detail::AdaptableLayer const* layer : chosen)
    detail::require_adaptable(*layer, all, settings);
  for (detail::AdaptableLayer const* layer : chosen) detail::adapt_layer(*layer, settings, seed);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void begin_with_singular_values(LoraAdapter& adapter, at::Tensor const& weight) {
  at::NoGradGuard const no_gradients;
  at::Tensor const whole = weight.detach().to(at::promote_types(weight.scalar_type(), at::kFloat));
  auto const [left, values, right] = at::linalg_svd(whole, /*full_matrices=*/false);
  auto const rank = adapter.settings().rank;
  at::Tensor const root = (values.slice(0, 0, rank) / adapter.scale()).sqrt();
  adapter.begin_as(root.unsqueeze(1) * right.slice(0, 0, rank), left.slice(1, 0, rank) * root);
}

}  // namespace frugal::detail
