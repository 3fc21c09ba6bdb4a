// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// The parameters with a name that a pattern selects: frozen for good in this module, until unfix_tensor()
/// or Unfreeze. A tied tensor is frozen by each of its names. A layer of BatchNorm whose parameters are all
/// frozen keeps its statistics in every fit, and so does one without parameters if a pattern selects its
/// running mean. SettingsError for a pattern that selects none.
void freeze(torch::nn::Module& module, NamePatterns const& patterns);

/// Trains only the other parameters.
///
/// Lever   hours per run: no gradient and no update of the frozen layers; memory: none of their
///         gradients and moments, and no activations below the first trained layer.
/// Cost    none. A checkpoint hashes the frozen parameters once per fit, and does not store them.
/// State   none: what is frozen belongs to the module, in this fit and in those that follow.
/// Errors  SettingsError for a pattern that selects no parameter; ModuleError if all are frozen;
///         StateError on a resume over other frozen weights than those of the checkpoint's run.
/// Source  requires_grad = False and eval() of the layers in PyTorch.
///
/// Patterns are those of parameters' names (Where): Freeze<Where<"encoder.*">>. A frozen BatchNorm layer
/// normalises by its statistics and keeps them, whatever calls train(): see freeze().
template <class Names>
struct Freeze {
  using kind = kinds::freeze;
  using listens = list<>;
  static constexpr bool adapts = true;
  static constexpr bool capturable = true;
  static constexpr About about{Term::hours_per_run, "none"};

  static void adapt(torch::nn::Module& module) { freeze(module, Names()); }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/freeze.ipp>
#endif
