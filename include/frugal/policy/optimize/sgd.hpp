// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/optimize/fused.hpp>
#include <frugal/policy/optimize/nothing.hpp>

namespace frugal {

struct SGD {};

/// Stochastic gradient descent, with momentum, Nesterov's variant and dampening.
///
/// Lever   hours per run: one kernel per step, while torch::optim dispatches several per tensor.
/// Cost    one fused ATen kernel per group's settings, device and dtype; no host sync.
/// State   with momentum one buffer of each parameter's shape, under the parameters' names.
/// Errors  SettingsError for settings out of range, a group that selects nothing, two groups that
///         give a parameter two values, a sparse gradient.
/// Source  Sutskever et al., "On the importance of initialization and momentum in deep learning"
///         (2013); torch.optim.SGD(fused=True).
template <>
struct Optimize<SGD> {
  using kind = kinds::optimizer;
  using listens = list<on::fit_begin, on::update>;

  static constexpr About about{Term::hours_per_run,
                               "one fused kernel per parameter group and step"};
  static constexpr bool capturable = true;
  static constexpr bool works_on_parts = true;

  double lr = 1e-3;           ///< learning rate, multiplied by the schedule's factor
  double momentum = 0.0;      ///< fraction of the last update that is kept
  double dampening = 0.0;     ///< fraction of the gradient that does not enter the momentum
  double weight_decay = 0.0;  ///< multiplied by the weight and added to the gradient
  bool nesterov = false;      ///< look ahead along the momentum; needs momentum, no dampening
  bool maximize = false;      ///< ascend
  std::vector<ParameterGroup> groups{};

  using State = detail::FusedState<Optimize>;

  // The first step fills the momentum buffer with the plain gradient; without dampening that is no
  // special case.
  bool has_first_step() const { return momentum != 0 && dampening != 0; }
  std::size_t moment_count() const { return momentum != 0 ? 1 : 0; }
  static std::string moment_name(std::size_t) { return "momentum_buffer"; }
  static double initial(std::size_t) { return 0.0; }
  void check() const {
    detail::require_learning_rate(lr, "Optimize<SGD>");
    detail::require_at_least_zero("momentum", momentum, "Optimize<SGD>");
    detail::require_at_least_zero("dampening", dampening, "Optimize<SGD>");
    detail::require_at_least_zero("weight_decay", weight_decay, "Optimize<SGD>");
    if (nesterov && (momentum <= 0 || dampening != 0)) {
      throw SettingsError({.what = "nesterov is set with momentum " + detail::general(momentum, 6) +
                                   " and dampening " + std::to_string(dampening),
                           .where = "Optimize<SGD>",
                           .why = "it looks ahead along an undampened momentum",
                           .fix = "Set momentum above 0 and dampening to 0."});
    }
  }
  template <class Rate>
  void apply(detail::FusedStep<Rate> const& step) const {
    at::TensorList const buffers =
        momentum != 0 ? at::TensorList(step.lists.moments[0]) : at::TensorList();
    at::_fused_sgd_(step.lists.parameters, step.gradients, buffers, step.weight_decay, momentum,
                    step.lr, dampening, nesterov, maximize, step.first,
                    /*grad_scale=*/std::nullopt, step.overflow);
  }
};

}  // namespace frugal
