// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/use_interception.hpp>
#include <frugal/core/run/settings.hpp>

namespace frugal {

/// A policy that adapts the module: it freezes parameters, or adds adapters. That belongs to the
/// module and not to a fit, so everything that uses the trainer's module does it first, a fit, an
/// evaluation and a plan alike; `adapt` must do nothing the second time. An `adapt(module, seed)`
/// draws initial values, and gets Settings::seed.
template <class P>
concept AdaptsModule = detail::has_property<property::adapts, P>;

namespace detail {

/// A policy whose adaptation a fit that is resumed does not need: its State makes up for it if the
/// run turns out to be new.
template <class P, class Policies>
concept Postpones = requires(P const& policy, Settings const& settings) {
  { policy.template postpones<Policies>(settings) } -> std::same_as<bool>;
};

template <class P>
concept HasAdapt = requires(P const& policy, torch::nn::Module& module) { policy.adapt(module); } ||
                   requires(P const& policy, torch::nn::Module& module, Adaptation& all) {
                     policy.adapt(module, all);
                   };

/// Does to a module what the policies of a recipe do to it, or nothing if one of them throws: see
/// Adaptation, which a policy may take as its second argument. `fit`: the settings of the fit that
/// follows; null if it is another call. `seed`: of the trainer's runs, for policies that draw initial
/// values.
template <class Values, class... Ps>
void adapt_module([[maybe_unused]] Values const& values, list<Ps...>, torch::nn::Module& module,
                  [[maybe_unused]] std::uint64_t seed,
                  [[maybe_unused]] Settings const* fit = nullptr) {
  // Policies, checkpoints and counts go by the names of tensors.
  register_members(module);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    [[maybe_unused]] auto const one = [&]<class P>(P const& policy, Adaptation& all) {
      if constexpr (AdaptsModule<P>) {
        static_assert(
            requires { policy.adapt(module); },
            "frugal: a policy with property::adapts lacks the member. Write `void "
            "adapt(torch::nn::Module& module) const`.");
        if constexpr (Postpones<P, list<Ps...>>) {
          if (fit != nullptr && policy.template postpones<list<Ps...>>(*fit)) return;
        }
        if constexpr (requires { policy.adapt(module, all); }) {
          policy.adapt(module, all);
        } else {
          policy.adapt(module);
        }
      }
    };
    static_assert(
        (true && ... && (AdaptsModule<Ps> || !HasAdapt<Ps>)),
        "frugal: a policy has `adapt(module)` and not property::adapts, so nobody would call it. "
        "Write `using properties = frugal::list<frugal::property::adapts>;`.");
    if constexpr ((AdaptsModule<Ps> || ...)) {
      Adaptation all(module, seed);
      (one(get<I>(values), all), ...);
      all.keep();
    }
  }(std::index_sequence_for<Ps...>());
  use_interception();
}

}  // namespace detail
}  // namespace frugal
