// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/frozen_statistics.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// The parameters with a name that a pattern selects: frozen for good in this module, until unfix_tensor()
/// or Unfreeze. A tied tensor is frozen by each of its names. SettingsError for a pattern that selects
/// none.
FRUGAL_INLINE void freeze(torch::nn::Module& module, NamePatterns const& patterns) {
  detail::register_members(module);
  std::vector<std::string> names;
  for (auto const& item : module.named_parameters()) names.push_back(item.key());
  patterns.require_in(names, "Freeze", "parameters");
  for (auto const& item : module.named_parameters()) {
    if (!item.value().defined() || !patterns.matches(item.key())) continue;
    if (!is_fixed(item.value()) && !is_released(item.value())) fix_tensor(item.value());
  }
}

/// Trains only the other parameters.
///
/// Lever   hours per run: no gradient and no update of the frozen layers; memory: none of their
///         gradients and moments, and no activations below the first trained layer.
/// Cost    none. A checkpoint hashes the frozen parameters once per fit, and does not store them.
/// State   none: it belongs to the module, in this fit and in those that follow.
/// Errors  SettingsError for a pattern that selects no parameter; ModuleError if all are frozen;
///         StateError on a resume over other frozen weights than those of the checkpoint's run.
/// Source  requires_grad = False and eval() of the layers in PyTorch.
///
/// Patterns are those of parameters' names (Where): Freeze<Where<"encoder.*">>. BatchNorm layers
/// with such names normalise by their statistics and keep them, whatever calls train().
template <class Names>
struct Freeze {
  using kind = kinds::freeze;
  using listens = list<on::fit_begin, around::forward>;
  static constexpr bool adapts = true;
  static constexpr bool capturable = true;
  static constexpr About about{Term::hours_per_run, "none"};

  static void adapt(torch::nn::Module& module) { freeze(module, Names()); }

  template <class Context>
  class State {
   public:
    using transient = void;  // found again when a fit begins
    explicit State(Freeze const&) {}

    void on_fit_begin(FitBegin<Context>& phase) {
      torch::nn::Module& module = base_module(phase.module());
      statistics_.find(module, [](std::string const& name) { return Names::matches(name); });
    }

    template <class Next>
    Loss around_forward(Forward<Context>& phase, Next&& next) {
      if (phase.training) statistics_.hold();
      return next();
    }

   private:
    detail::FrozenStatistics statistics_;
  };
};

}  // namespace frugal
