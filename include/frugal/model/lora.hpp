// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/model/lora/adapter.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// Refuses trained parameters that the first window's backward pass has not reached: a layer that
/// the module's forward never calls, because it has another one in its place, would train nothing
/// and be saved as trained.
class FirstGradients {
 public:
  void check(Parameters const& parameters, char const* policy) {
    if (checked_) [[likely]]
      return;
    checked_ = true;
    require(parameters, policy);
  }

 private:
  static void require(Parameters const& parameters, char const* policy);

  bool checked_ = false;
};

}  // namespace frugal::detail

namespace frugal {

namespace detail {

[[noreturn]] void refuse_adapter(std::string what, std::string where, std::string why,
                                 std::string fix);

/// The adapter of a layer with this name; null without.
std::shared_ptr<LoraAdapter> adapter_of(torch::nn::Module const& layer, std::string const& name);

/// SettingsError for a rank, alpha or dropout out of range. Those of the types are checked by the compiler.
void require_numbers(LoraSettings const& settings);

/// SettingsError for a layer that cannot have such an adapter. `all` are the layers of its module.
/// To be called for every layer before the first one changes.
void require_adaptable(AdaptableLayer const& layer, std::vector<AdaptableLayer> const& all,
                       LoraSettings const& settings);

/// Gives a layer its adapter, unless it has one. After require_adaptable().
void adapt_layer(AdaptableLayer const& layer, LoraSettings const& settings, std::uint64_t seed = 0);

/// Trains the adapters of a name, and the parameters that patterns select by one of their names. Fixes
/// every other parameter, but what another policy of the recipe trains.
void fix_base(torch::nn::Module& module, Adaptation& all, std::string_view name,
              std::vector<std::string_view> const& also_trained);
/// The same of an adapter that is loaded: those that are trained already remain so, with their heads.
void fix_base(torch::nn::Module& module, std::vector<std::string_view> const& also_trained,
              std::string_view name);

void require_parameters(torch::nn::Module& module, std::vector<std::string_view> const& patterns);

}  // namespace detail

/// Adds adapters to the layers that `targets` name, as Lora's policy does. SettingsError for a
/// target without a layer, and for a layer that cannot be adapted; then nothing has changed. The
/// adapters' initial values are drawn from the seed.
void add_adapters(torch::nn::Module& module, LoraSettings const& settings,
                  std::vector<std::string_view> const& targets, std::uint64_t seed = 0);

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
/// Options, in any order: Rank<8>, Alpha<32>, On<"q_proj", "v_proj">, AdapterDropout<0.1>,
/// RankStabilized, Dora, Pissa, AdapterName<"task">, AlsoTrain<"head.*">, Base<NF4>.
template <class... Options>
struct Lora {
 private:
  using classes = list<detail::option::rank, detail::option::alpha, detail::option::on_layers,
                       detail::option::also_train, detail::option::adapter_dropout,
                       detail::option::rank_stabilized, detail::option::dora, detail::option::pissa,
                       detail::option::adapter_name, detail::option::base_type>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Lora<...>: unknown option. Options: Rank<8>, Alpha<32>, On<\"q_proj\">, "
                "AdapterDropout<0.1>, RankStabilized, Dora, Pissa, AdapterName<\"task\">, "
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
  using Targets = detail::option_of<detail::option::on_layers, Nowhere, Options...>;
  using Trained = detail::option_of<detail::option::also_train, Nowhere, Options...>;
  using Dropped =
      detail::option_of<detail::option::adapter_dropout, AdapterDropout<0.0>, Options...>;
  using Name = detail::option_of<detail::option::adapter_name, AdapterName<"default">, Options...>;
  static constexpr std::optional<double> alpha_of_type() {
    if constexpr (has<detail::option::alpha>) {
      return detail::option_of<detail::option::alpha, void, Options...>::alpha;
    }
    return {};
  }

 public:
  using kind = kinds::lora;
  using listens = list<on::gradients>;
  using after = list<kinds::freeze>;
  using properties = list<property::adapts, property::capturable, property::works_in_layers>;
  static constexpr About about{Term::hours_per_run,
                               "two small products per adapted layer and pass"};

  std::int64_t rank = R::rank;
  /// The product is scaled by this over the rank. Without Alpha<...> it is the rank, as it is set.
  std::optional<double> alpha = alpha_of_type();
  double dropout = Dropped::adapter_dropout;  ///< probability, of the adapters' inputs

  LoraSettings settings() const {
    return {.rank = rank,
            .alpha = alpha.value_or(static_cast<double>(rank)),
            .dropout = dropout,
            .rank_stabilized = has<detail::option::rank_stabilized>,
            .dora = has<detail::option::dora>,
            .pissa = has<detail::option::pissa>,
            .nf4 = has<detail::option::base_type>,
            .name = std::string(Name::adapter_name)};
  }

  void adapt(torch::nn::Module& module, detail::Adaptation& all) const {
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
  void adapt(torch::nn::Module& module, std::uint64_t seed = 0) const {
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

namespace frugal::detail {

/// PiSSA: the adapter begins as the weight's largest singular values. See LoraAdapter::begin_as().
void begin_with_singular_values(LoraAdapter& adapter, at::Tensor const& weight);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora.ipp>
#endif
