// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal {

/// Parts of parameters: this process's elements of each, as a tensor of one dimension.
struct ParameterParts {
  Parameters parameters{};
  std::vector<std::optional<TensorPart>> of{};  ///< nothing for a parameter that is there as it is
};

/// A run of one recipe over one type of module. Every phase refers to one.
template <class Context>
struct Run : RunState {
  using Module = typename Context::module_type;
  using Engine = typename Context::engine;
  /// Whether several processes train together.
  static constexpr bool agrees = detail::provided<service::reduce, typename Context::policies>;
  /// Whether they divide each window, so that all have the losses of the whole.
  static constexpr bool divides = detail::provided<service::share, typename Context::policies>;

  Run(Module& the_module, Settings const& the_settings, RunLimits const& the_horizon)
      : RunState{.root = base_module(the_module),
                 .settings = the_settings,
                 .horizon = the_horizon,
                 .ledger = LossAccumulator(agrees ? LossAccumulator::Reading::when_agreed
                                                  : LossAccumulator::Reading::at_once)},
        module(the_module) {}

  /// Sets the States of the recipe's policies; must be called before the first event.
  void attach(Engine& states, LoopInterface& of) {
    engine = &states;
    policies = PolicyStates::of(states);
    loop = &of;
  }

  /// Combines one value of each process that trains together; with one process, the value itself.
  template <class T>
  T reduce([[maybe_unused]] Quantity what, T value) {
    if constexpr (agrees) {
      return engine->template provider<service::reduce>().reduce(what, std::move(value));
    } else {
      return value;
    }
  }

  /// Weighted mean of this epoch's losses so far; NaN before the first. May wait for a device and
  /// for other processes. Throws the LossError of a bad loss, in every process.
  double mean_loss() {
    if constexpr (agrees && !divides) {
      LossAccumulator::Sum const here = ledger.sum();
      double const sum = reduce(Quantity::loss, ledger.bad() ? nan : here.losses);
      double const weight = reduce(Quantity::loss, here.weights);
      if (std::isnan(sum)) refuse_bad_loss();
      return weight == 0 ? nan : sum / weight;
    } else {
      double const mean = ledger.mean();
      if (divides && ledger.bad()) refuse_bad_loss();
      return mean;
    }
  }

  /// Reads the losses still on a device. Throws the LossError of a bad one, in every process.
  void read_losses() {
    ledger.read_pending();
    if constexpr (divides) {
      if (ledger.bad()) refuse_bad_loss();
    } else if constexpr (agrees) {
      if (std::isnan(reduce(Quantity::loss, ledger.bad() ? nan : 0.0))) refuse_bad_loss();
    }
  }

  /// Throws the LossError of a bad loss, of this process or of another one.
  [[noreturn]] void refuse_bad_loss() const {
    if (ledger.bad()) std::rethrow_exception(ledger.bad());
    detail::refuse_bad_loss_elsewhere(counters);
  }

  /// Total weight of a window's losses over all processes. Throws like mean_loss().
  double window_weight(double here) {
    double const all = reduce(Quantity::window_weight, ledger.bad() ? nan : here);
    if (std::isnan(all)) refuse_bad_loss();
    return all;
  }

  /// Whether this process writes what a run of several processes has once.
  bool is_first() {
    if constexpr (divides) {
      return engine->template provider<service::share>().is_first();
    } else {
      return true;
    }
  }
  Processes processes() const {
    if constexpr (divides) {
      return engine->template provider<service::share>().processes();
    } else {
      return {};
    }
  }
  /// The text of the first process; all of them call it.
  std::string from_first([[maybe_unused]] std::string const& text)
    requires divides
  {
    return engine->template provider<service::share>().from_first(text);
  }

  /// The share of a validation's batches that this process measures.
  EqualShare measures() const {
    if constexpr (divides) {
      auto const& all = engine->template provider<service::share>();
      if constexpr (requires { all.measures(); }) return all.measures();
    }
    return {};
  }
  /// The texts of all processes, in their order; all of them call it.
  std::vector<std::string> texts_of_all(std::string const& text) {
    if constexpr (divides) {
      auto& all = engine->template provider<service::share>();
      if constexpr (requires { all.texts_of_all(text); }) return all.texts_of_all(text);
    }
    return {text};
  }

  /// What the optimizer updates: the parameters, or this process's parts of them.
  Parameters const& updated() const {
    if constexpr (divides) {
      if (parts != nullptr) return parts->parameters;
    }
    return parameters;
  }

  Module& module;
  Engine* engine = nullptr;
  ParameterParts const* parts = nullptr;  ///< set by the provider of service::share
  /// Of a window that processes divide: what the gradients of the micro-batch in its backward pass
  /// are still to be multiplied by.
  double gradient_unit = 1;

 private:
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace frugal
