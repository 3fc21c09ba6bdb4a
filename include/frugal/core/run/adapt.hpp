// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <utility>

#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/storage.hpp>
#include <frugal/core/libtorch/use_interception.hpp>

namespace frugal {

/// A policy that adapts the module: it freezes parameters, or adds adapters. That belongs to the
/// module and not to a fit, so everything that uses the trainer's module does it first, a fit, an
/// evaluation and a plan alike; `adapt` must do nothing the second time.
template <class P>
concept AdaptsModule = requires {
  requires P::adapts;
};

namespace detail {

/// Does to a module what the policies of a recipe do to it.
template <class Values, class... Ps>
void adapt_module([[maybe_unused]] Values const& values, list<Ps...>, torch::nn::Module& module) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    [[maybe_unused]] auto const one = [&]<class P>(P const& policy) {
      if constexpr (AdaptsModule<P>) {
        static_assert(
            requires { policy.adapt(module); },
            "frugal: a policy that declares `adapts` lacks the member. Write `void "
            "adapt(torch::nn::Module& module) const`.");
        policy.adapt(module);
      }
    };
    (one(get<I>(values)), ...);
  }(std::index_sequence_for<Ps...>());
  use_interception();
}

}  // namespace detail
}  // namespace frugal
