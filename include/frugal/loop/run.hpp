// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/loop/any_run.hpp>
#include <frugal/loop/horizon.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/loop/settings.hpp>

namespace frugal {

/// A run of one recipe over one type of module. Every phase refers to one of these.
template <class Context>
struct Run : AnyRun {
  using Module = typename Context::module_type;
  using Engine = typename Context::engine;

  Run(Module& the_module, Settings const& the_settings, Horizon const& the_horizon)
      : AnyRun{.root = base_module(the_module), .settings = the_settings, .horizon = the_horizon},
        module(the_module) {}

  /// The states of the recipe's policies; there before the first event.
  void attach(Engine& states) {
    engine = &states;
    policies = PolicyStates::of(states);
  }

  Module& module;
  Engine* engine = nullptr;
};

}  // namespace frugal
