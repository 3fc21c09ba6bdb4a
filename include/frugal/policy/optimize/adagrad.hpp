// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/optimize/fused.hpp>
#include <frugal/policy/optimize/nothing.hpp>

namespace frugal {

struct Adagrad {};

/// Adagrad: learning rates that decrease with the accumulated squared gradients.
///
/// Lever   hours per run: one kernel per step, while torch::optim dispatches several per tensor.
/// Cost    one fused ATen kernel per group's settings, device and dtype; no host sync.
/// State   the sum of squared gradients, of each parameter's shape, and step counts; saved under
///         the parameters' names.
/// Errors  SettingsError for settings out of range, a group that selects nothing, two groups that
///         give a parameter two values, a sparse gradient.
/// Source  Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and
///         stochastic optimization" (2011); torch.optim.Adagrad(fused=True).
template <>
struct Optimize<Adagrad> {
  using kind = kinds::optimizer;
  using listens = list<on::fit_begin, on::update>;

  static constexpr About about{Term::hours_per_run,
                               "one fused kernel per parameter group and step"};
  static constexpr bool capturable = true;
  static constexpr bool works_on_parts = true;

  double lr = 1e-2;                  ///< learning rate, multiplied by the schedule's factor
  double lr_decay = 0.0;             ///< the rate is divided by 1 + (step - 1) * lr_decay
  double weight_decay = 0.0;         ///< multiplied by the weight and added to the gradient
  double initial_accumulator = 0.0;  ///< initial value of the sum of squares
  double eps = 1e-10;                ///< added to the root of the sum
  bool maximize = false;             ///< ascend
  std::vector<ParameterGroup> groups{};

  using State = detail::FusedState<Optimize>;

  static bool has_first_step() { return false; }
  static std::size_t moment_count() { return 1; }
  static std::string moment_name(std::size_t) { return "sum"; }
  double initial(std::size_t) const { return initial_accumulator; }
  void check() const {
    detail::require_learning_rate(lr, "Optimize<Adagrad>");
    detail::require_at_least_zero("lr_decay", lr_decay, "Optimize<Adagrad>");
    detail::require_at_least_zero("weight_decay", weight_decay, "Optimize<Adagrad>");
    detail::require_at_least_zero("initial_accumulator", initial_accumulator, "Optimize<Adagrad>");
    detail::require_at_least_zero("eps", eps, "Optimize<Adagrad>");
  }
  template <class Rate>
  void apply(detail::FusedStep<Rate> const& step) const {
    at::_fused_adagrad_(step.lists.parameters, step.gradients, step.lists.moments[0],
                        step.lists.steps, step.lr, lr_decay, step.weight_decay, eps, maximize,
                        /*grad_scale=*/std::nullopt, step.overflow);
  }
};

}  // namespace frugal
