// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/dropped_weight.hpp>
#include <frugal/model/first_gradients.hpp>
#include <frugal/model/lora/adapter.hpp>
#include <frugal/model/lora/heads.hpp>
#include <frugal/model/lora/initial.hpp>
#include <frugal/model/lora/layers.hpp>
#include <frugal/model/lora/nf4.hpp>
#include <frugal/model/lora/options.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

[[noreturn]] FRUGAL_INLINE void refuse_adapter(std::string what, std::string where, std::string why,
                                               std::string fix) {
  throw SettingsError({.what = std::move(what),
                       .where = std::move(where),
                       .why = std::move(why),
                       .fix = std::move(fix)});
}

/// The adapter of a layer with this name; null without.
FRUGAL_INLINE std::shared_ptr<LoraAdapter> adapter_of(torch::nn::Module const& layer,
                                                      std::string const& name) {
  auto const all = adapters_of(layer);
  if (!all) return nullptr;
  auto const children = all->named_children();
  auto const* const found = children.find(name);
  return found == nullptr ? nullptr : std::dynamic_pointer_cast<LoraAdapter>(*found);
}

/// SettingsError for a layer that cannot have such an adapter. `all` are the layers of its module.
/// To be called for every layer before the first one changes.
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
                   "it is quantised (Base<NF4>, quantise), and Dora, Pissa and Base<NF4> read it",
                   "Remove these options, or adapt the layer before it is quantised.");
  }
  if (settings.pissa || (settings.nf4 && !is_packed)) {
    bool const narrows = settings.nf4 && layer.weight.scalar_type() == at::kDouble;
    require_finite(narrows ? layer.weight.to(at::kFloat) : layer.weight, layer.name,
                   settings.pissa ? "Lora, Pissa" : "Lora, Base<NF4>");
  }
}

/// Gives a layer its adapter, unless it has one. After require_adaptable().
FRUGAL_INLINE void adapt_layer(AdaptableLayer const& layer, LoraSettings const& settings,
                               std::uint64_t seed = 0) {
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

/// Trains the adapters of a name, and the parameters that patterns select by one of their names. Fixes
/// every other parameter, but what another policy of the recipe trains.
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
/// The same of an adapter that is loaded: those that are trained already remain so, with their heads.
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

}  // namespace detail

/// Adds adapters to the layers that `targets` name, as Lora's policy does. SettingsError for a
/// target without a layer, and for a layer that cannot be adapted; then nothing has changed. The
/// adapters' initial values are drawn from the seed.
FRUGAL_INLINE void add_adapters(torch::nn::Module& module, LoraSettings const& settings,
                                std::vector<std::string_view> const& targets,
                                std::uint64_t seed = 0) {
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

/// Low-rank adaptation: the module's weights stay, and a product of two small matrices is trained
/// for each chosen layer.
///
/// Lever   hours per run: no gradient of the large weights and no update of them; memory: none of
///         their gradients and moments. Checkpoints have the adapters alone.
/// Cost    two small products per adapted layer and pass. Dora computes the norms of the weight's
///         rows in each pass; Pissa one singular value decomposition per layer at the beginning.
/// State   none: adapters belong to the module, in this fit, in those that follow, and in evaluate and
///         predict. A recipe trains the adapters that its policies name, and fixes all others.
/// Errors  SettingsError for a name in On<...> that is no layer's, a convolution with groups, an
///         adapter that is there with other settings or is merged; ModuleError after the first window
///         if an adapter gets no gradient; StateError on a resume over another base.
/// Source  Hu et al., "LoRA" (2021); Kalajdzievski, "rsLoRA" (2023); Liu et al., "DoRA" (2024); Meng
///         et al., "PiSSA" (2024). Outputs and steps are those of PEFT.
///
/// Options, in any order: Rank<8>, Alpha<32>, On<"q_proj", "v_proj">, AdapterDropout<0.1_r>,
/// RankStabilised, Dora, Pissa, AdapterName<"task">, AlsoTrain<"head.*">, Base<NF4>.
template <class... Options>
struct Lora {
 private:
  using classes = list<detail::option::rank, detail::option::alpha, detail::option::on_layers,
                       detail::option::also_train, detail::option::adapter_dropout,
                       detail::option::rank_stabilised, detail::option::dora, detail::option::pissa,
                       detail::option::adapter_name, detail::option::base_type>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Lora<...>: unknown option. Options: Rank<8>, Alpha<32>, On<\"q_proj\">, "
                "AdapterDropout<0.1_r>, RankStabilised, Dora, Pissa, AdapterName<\"task\">, "
                "AlsoTrain<\"head.*\">, Base<NF4>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Lora<...>: the same option twice. Keep one; On and AlsoTrain take several "
                "names.");
  template <class Class>
  static constexpr bool has = (false || ... || Class::template has<Options>);
  static_assert(has<detail::option::on_layers>,
                "frugal: Lora must know which layers it adapts. Add On<\"q_proj\", \"v_proj\">, or "
                "On<\"*\"> for every Linear, Conv2d and Embedding.");
  static_assert(
      !(has<detail::option::dora> && has<detail::option::base_type>),
      "frugal: Dora needs the norms of a weight's rows, and Base<NF4> keeps the weight in "
      "4 bits. Remove one of them.");
  static_assert(!(has<detail::option::pissa> && has<detail::option::base_type>),
                "frugal: Pissa begins with the weight's singular values, and Base<NF4> keeps the "
                "weight in 4 bits. Remove one of them.");
  struct Nowhere {
    static constexpr std::array<std::string_view, 0> names{};
    static constexpr std::array<std::string_view, 0> patterns{};
  };
  using R = detail::option_of<detail::option::rank, Rank<8>, Options...>;
  using A = detail::option_of<detail::option::alpha, Alpha<R::rank>, Options...>;
  using Targets = detail::option_of<detail::option::on_layers, Nowhere, Options...>;
  using Trained = detail::option_of<detail::option::also_train, Nowhere, Options...>;
  using Dropped =
      detail::option_of<detail::option::adapter_dropout, AdapterDropout<0.0_r>, Options...>;
  using Name = detail::option_of<detail::option::adapter_name, AdapterName<"default">, Options...>;

 public:
  using kind = kinds::lora;
  using listens = list<on::gradients>;
  using after = list<kinds::freeze>;
  static constexpr bool adapts = true;
  static constexpr bool capturable = true;
  static constexpr About about{Term::hours_per_run,
                               "two small products per adapted layer and pass"};

  static LoraSettings settings() {
    return {.rank = R::rank,
            .alpha = A::alpha,
            .dropout = Dropped::adapter_dropout,
            .rank_stabilised = has<detail::option::rank_stabilised>,
            .dora = has<detail::option::dora>,
            .pissa = has<detail::option::pissa>,
            .nf4 = has<detail::option::base_type>,
            .name = std::string(Name::adapter_name)};
  }

  static void adapt(torch::nn::Module& module, detail::Adaptation& all) {
    std::vector<std::string_view> const trained(Trained::patterns.begin(), Trained::patterns.end());
    detail::require_parameters(module, trained);
    detail::require_own_heads(module, trained, Name::adapter_name);
    auto const before = detail::find_adapters(module);
    add_adapters(module, settings(), {Targets::names.begin(), Targets::names.end()}, all.seed());
    for (detail::FoundAdapter const& each : detail::find_adapters(module, Name::adapter_name)) {
      if (std::ranges::find(before, each.adapter, &detail::FoundAdapter::adapter) == before.end()) {
        all.otherwise([each] { detail::detach_adapter(each); });
      }
    }
    detail::fix_base(module, all, Name::adapter_name, trained);
  }
  /// The seed is that of the run: Settings::seed.
  static void adapt(torch::nn::Module& module, std::uint64_t seed = 0) {
    detail::Adaptation alone(module, seed);
    adapt(module, alone);
    alone.keep();
  }

  class State {
   public:
    using transient = void;
    explicit State(Lora const&) {}
    void on_gradients(Gradients& phase) { first_.check(phase.parameters(), "Lora"); }

   private:
    detail::FirstGradients first_;
  };
};

/// Does to a module what a policy that adapts it does in a trainer, such as Lora or Freeze.
template <class Module, class Policy>
void adapt(Module& module, Policy const& policy) {
  policy.adapt(base_module(module));
}
/// The same with the seed of a run (Settings::seed), for a policy that draws initial values: Lora.
template <class Module, class Policy>
  requires requires(Policy const& policy, torch::nn::Module& root, std::uint64_t seed) {
    policy.adapt(root, seed);
  }
void adapt(Module& module, Policy const& policy, std::uint64_t seed) {
  policy.adapt(base_module(module), seed);
}

}  // namespace frugal
