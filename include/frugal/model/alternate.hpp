// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// A part of a module that is trained alone, for `Steps` optimizer steps in a row: Turn<Where<"critic.*">, 5>.
template <class Names, std::uint64_t Steps = 1>
struct Turn {
  static_assert(Steps >= 1, "frugal: Turn<Where<...>, 0> trains nothing. Write 1 or more.");
  static_assert(
      requires { Names::patterns; },
      "frugal: Turn<...> begins with the parameters that it trains. Write "
      "Turn<Where<\"critic.*\">, 5>.");
  using names = Names;

  std::uint64_t steps = Steps;  ///< optimizer steps in a row
};

namespace detail {

/// The trained parameters that each turn selects. SettingsError for a pattern that selects none, and for a parameter of
/// two turns, by whatever name.
std::vector<std::vector<at::Tensor>> tensors_of_turns(torch::nn::Module& module,
                                                      std::vector<NamePatterns> const& turns);

/// The turn at an optimizer step, counted from 0.
std::size_t turn_at(std::uint64_t step, std::vector<std::uint64_t> const& steps);

/// Whose turn it is, in one run.
class TurnsOfRun {
 public:
  explicit TurnsOfRun(std::vector<std::uint64_t> steps) : steps_(std::move(steps)) {}

  void find(ModuleSetup& phase, std::vector<NamePatterns> const& turns);
  /// SettingsError for a turn of 0 steps.
  void begin(FitBegin& phase) const;
  /// Gives the turn to that of a step.
  void at_step(std::uint64_t step) { hold_->give_turn(turn_at(step, steps_)); }
  std::size_t now() const { return hold_->turn(); }
  void give(std::size_t turn) { hold_->give_turn(turn); }

 private:
  ModuleHold* hold_ = nullptr;
  std::vector<std::uint64_t> steps_;
};

template <class T>
concept is_turn = requires(T const& turn) {
  typename T::names;
  { turn.steps } -> std::convertible_to<std::uint64_t>;
};

FRUGAL_DIAGNOSTIC(alternate_and_graph,
                  "frugal: CudaGraph captures one step for the whole run, and Alternate changes "
                  "which parameters a step trains. Remove one of them.");
FRUGAL_DIAGNOSTIC(
    alternate_and_unfreeze,
    "frugal: Alternate and Unfreeze both decide which parameters a step trains. Remove "
    "one of them.");

}  // namespace detail

/// Whether a part of the module is trained in this window, for an objective that has a loss for each turn. True for
/// every part in a validation and outside of a fit.
template <class Module>
bool trains(Module& module) {
  for (at::Tensor const& each : base_module(module).parameters()) {
    if (each.requires_grad()) return true;
  }
  return false;
}

/// Trains the parts of a module in turns: generator and critic, actor and critic.
///
/// Each optimizer step trains the parameters of one turn; those of the others get no gradient, and the optimizer leaves
/// them, their moments and their step counts alone, as if each part had an optimizer of its own. Parameters that no
/// turn names are trained in all of them. Rates, decays and momenta of each part are parameter groups of Optimize.
///
/// Lever   none: for losses that compete.
/// Cost    one comparison per step.
/// State   none: whose turn it is follows from the number of steps, so that a resumed run, and one that Rollback has
///         taken back, goes on with the turn that it had.
/// Errors  SettingsError for a pattern that selects no parameter, for a parameter of two turns, and for a turn of 0 steps.
///         With CudaGraph, Unfreeze, Pipeline, or Replicate with Shard, LocalSteps or Wire<PowerSGD>, it does not
///         compile.
/// Source  Goodfellow et al., "Generative adversarial nets" (2014), algorithm 1: k steps of the one for each of the other.
///
///     Alternate<Turn<Where<"critic.*">, 5>, Turn<Where<"generator.*">>>
///
/// The objective asks whose turn it is: `if (fr::trains(module->critic)) ...`. A window that an overflow skips is no
/// step, and its turn is repeated.
template <class... Turns>
struct Alternate {
  static_assert(
      sizeof...(Turns) >= 2,
      "frugal: Alternate<...> takes two turns or more. Write Alternate<Turn<Where<\"critic.*\">, "
      "5>, Turn<Where<\"generator.*\">>>.");
  static_assert((... && detail::is_turn<Turns>),
                "frugal: Alternate<...> takes turns, and one of these is something else. Write "
                "Alternate<Turn<Where<\"critic.*\">, 5>, Turn<Where<\"generator.*\">>>.");
  using kind = kinds::alternate;
  using listens = list<on::module, on::fit_begin, on::window, around::validate>;
  using after = list<kinds::freeze, kinds::lora>;
  using conflicts = list<conflict<kinds::execution, detail::alternate_and_graph>,
                         conflict<kinds::unfreeze, detail::alternate_and_unfreeze>>;
  using properties = list<property::adds_no_metrics>;
  static constexpr About about{Term::none, "one comparison per step"};

  std::tuple<Turns...> turns{};

  class State {
   public:
    using transient = void;  // the counters have it

    explicit State(Alternate const& settings)
        : turns_(std::apply([](auto const&... turn) { return std::vector{turn.steps...}; },
                            settings.turns)) {}

    void on_module(ModuleSetup& phase) {
      turns_.find(phase, {NamePatterns(typename Turns::names())...});
    }
    void on_fit_begin(FitBegin& phase) { turns_.begin(phase); }
    void on_window(WindowBegin& phase) { turns_.at_step(phase.counters().step); }

    /// A validation is of the whole module, whosever turn it is.
    template <class Next>
    Metrics around_validate(ValidationRun const&, Next&& next) {
      struct Back {
        detail::TurnsOfRun& turns;
        std::size_t turn;
        ~Back() { turns.give(turn); }
      } const back{turns_, turns_.now()};
      turns_.give(detail::ModuleHold::all_parts);
      return next();
    }

   private:
    detail::TurnsOfRun turns_;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/alternate.ipp>
#endif
