// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>

namespace frugal {

namespace detail {

template <class State>
class SavingState final : public SaverInterface {
 public:
  explicit SavingState(State& state) : state_(state) {}
  bool save(CheckpointPhase& at) override { return state_.save(at); }
  double save_seconds() const override { return state_.save_seconds(); }

 private:
  State& state_;
};

template <class State>
class CapturingState final : public CaptureInterface {
 public:
  explicit CapturingState(State& state) : state_(state) {}
  bool capturing() const override { return state_.capturing(); }
  void defer(std::function<void()> after_each_replay) override {
    state_.defer(std::move(after_each_replay));
  }
  at::Tensor const& rate() const override { return state_.rate(); }
  void state_has_moved() override { state_.state_has_moved(); }

 private:
  State& state_;
};

}  // namespace detail

/// The state of a run at its beginning.
struct RunOfFacts : RunState {
  RunOfFacts(torch::nn::Module& the_module, Settings const& the_settings,
             RunLimits const& the_horizon, RecipeFacts const& of);
};

/// A run of one recipe over one type of module. Every phase refers to its RunState.
template <class Context>
struct Run : RunOfFacts {
  using Module = typename Context::module_type;
  using Engine = typename Context::engine;
  using Policies = typename Context::policies;
  using MetricValues =
      typename detail::made_metrics<typename detail::traits_of<Context>::metrics>::type;

  Run(Module& the_module, Settings const& the_settings, RunLimits const& the_horizon,
      RecipeFacts const& facts = Context::facts, MetricValues const& the_metrics = {})
      : RunOfFacts(base_module(the_module), the_settings, the_horizon, facts),
        module(the_module),
        metrics(the_metrics) {}

  /// Sets the States of the recipe's policies, and the other processes, if there are any; must be called before
  /// the first event.
  void attach(Engine& states, LoopInterface& of, std::unique_ptr<ProcessesInterface> with) {
    engine = &states;
    links.to_policies(PolicyStates::of(states), PolicyEvents::of(states));
    links.to_loop(of);
    processes_ = std::move(with);
    links.to_processes(processes_.get());
    if constexpr (detail::provided<service::save, Policies>) {
      saver_.reset(new detail::SavingState(states.template provider<service::save>()));
      links.to_saver(*saver_);
    }
    if constexpr (captures_steps<Policies>) {
      auto& captures = states.template provider<service::capture>();
      capture_.reset(new detail::CapturingState(captures));
      links.to_capture(*capture_);
    }
  }

  /// As RunState's; the loop calls it in every step.
  Parameters const& updated() const {
    if constexpr (Context::facts.divides) {
      return RunState::updated();
    } else {
      return parameters;
    }
  }

  /// Batches of the source to a window.
  int batches() const {
    constexpr int of_type = detail::traits_of<Context>::batches;
    if constexpr (of_type == 0) {
      return links.facts().batches;
    } else {
      return of_type;
    }
  }

  Module& module;
  Engine* engine = nullptr;
  /// What each measurement begins with.
  [[no_unique_address]] MetricValues metrics;

 private:
  // What the links lead to.
  std::unique_ptr<ProcessesInterface> processes_;
  std::unique_ptr<SaverInterface> saver_;
  std::unique_ptr<CaptureInterface> capture_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run.ipp>
#endif
