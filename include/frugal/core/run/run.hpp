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

/// The processes of a recipe by the State that reduces over them.
template <class State>
class ReducingProcesses : public ProcessesInterface {
 public:
  explicit ReducingProcesses(State& state) : state_(state) {}
  double reduce(Quantity what, double value) final { return state_.reduce(what, value); }
  at::Tensor reduce(Quantity what, at::Tensor value) final {
    return state_.reduce(what, std::move(value));
  }
  bool is_first() const override { return true; }
  Processes processes() const override { return {}; }
  EqualShare measures() const override { return {}; }
  std::string from_first(std::string const& text) override { return text; }
  std::string first_of(std::string const& text) override { return text; }
  std::vector<std::string> texts_of_all(std::string const& text) override { return {text}; }
  std::vector<at::Tensor> norms(Parameters const&) override { return {}; }
  void collect_parts() override {}

 private:
  State& state_;
};

/// Likewise, of a recipe whose processes divide windows.
template <class Reduces, class Shares>
class SharingProcesses final : public ReducingProcesses<Reduces> {
 public:
  SharingProcesses(Reduces& reduces, Shares& shares)
      : ReducingProcesses<Reduces>(reduces), state_(shares) {}
  bool is_first() const override { return state_.is_first(); }
  Processes processes() const override { return state_.processes(); }
  EqualShare measures() const override {
    if constexpr (requires { state_.measures(); }) return state_.measures();
    return {};
  }
  std::string from_first(std::string const& text) override { return state_.from_first(text); }
  std::string first_of(std::string const& text) override { return state_.first_of(text); }
  std::vector<std::string> texts_of_all(std::string const& text) override {
    if constexpr (requires { state_.texts_of_all(text); }) return state_.texts_of_all(text);
    return {text};
  }
  std::vector<at::Tensor> norms(Parameters const& updated) override {
    return state_.norms(updated);
  }
  void collect_parts() override { state_.collect_parts(); }

 private:
  Shares& state_;
};

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
  /// Whether several processes train together.
  static constexpr bool agrees = detail::provided<service::reduce, Policies>;
  /// Whether they divide each window, so that all have the losses of the whole.
  static constexpr bool divides = detail::provided<service::share, Policies>;

  Run(Module& the_module, Settings const& the_settings, RunLimits const& the_horizon)
      : RunOfFacts(base_module(the_module), the_settings, the_horizon, Context::facts),
        module(the_module) {}

  /// Sets the States of the recipe's policies; must be called before the first event.
  void attach(Engine& states, LoopInterface& of) {
    engine = &states;
    policies = PolicyStates::of(states);
    events_of_policies = PolicyEvents::of(states);
    loop = &of;
    if constexpr (divides) {
      auto& reduces = states.template provider<service::reduce>();
      auto& shares = states.template provider<service::share>();
      processes_.reset(new detail::SharingProcesses(reduces, shares));
      others = processes_.get();
    } else if constexpr (agrees) {
      auto& reduces = states.template provider<service::reduce>();
      processes_.reset(new detail::ReducingProcesses(reduces));
      others = processes_.get();
    }
    if constexpr (detail::provided<service::save, Policies>) {
      saver_.reset(new detail::SavingState(states.template provider<service::save>()));
      saver = saver_.get();
    }
    if constexpr (captures_steps<Policies>) {
      auto& captures = states.template provider<service::capture>();
      capture_.reset(new detail::CapturingState(captures));
      capture = capture_.get();
    }
  }

  /// As RunState's; the loop calls it in every step.
  Parameters const& updated() const {
    if constexpr (divides) {
      return RunState::updated();
    } else {
      return parameters;
    }
  }

  Module& module;
  Engine* engine = nullptr;

 private:
  // What the pointers of RunState point to.
  std::unique_ptr<ProcessesInterface> processes_;
  std::unique_ptr<SaverInterface> saver_;
  std::unique_ptr<CaptureInterface> capture_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run.ipp>
#endif
