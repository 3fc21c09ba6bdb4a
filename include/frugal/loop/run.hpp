// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <utility>

#include <frugal/libtorch/parameters.hpp>
#include <frugal/loop/any_run.hpp>
#include <frugal/loop/horizon.hpp>
#include <frugal/loop/services.hpp>
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
  void attach(Engine& states, LoopCalls& of) {
    engine = &states;
    policies = PolicyStates::of(states);
    loop = &of;
  }

  /// What processes that train together make of one value each; of one process, the value.
  template <class T>
  T reduce([[maybe_unused]] Quantity what, T value) {
    if constexpr (detail::provided<service::reduce, typename Context::policies>) {
      return engine->template provider<service::reduce>().reduce(what, std::move(value));
    } else {
      return value;
    }
  }

  /// Weighted mean of this epoch's losses so far; NaN before the first. May wait for a device, and
  /// for other processes.
  double mean_loss() {
    if constexpr (detail::provided<service::reduce, typename Context::policies>) {
      LossLedger::Sum const here = ledger.sum();
      double const sum = reduce(Quantity::loss, here.losses);
      double const weight = reduce(Quantity::loss, here.weights);
      return weight == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / weight;
    } else {
      return ledger.mean();
    }
  }

  Module& module;
  Engine* engine = nullptr;
};

}  // namespace frugal
