// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/optimize/fused.hpp>
#include <frugal/policy/optimize/nothing.hpp>

namespace frugal {

struct AdamW {};
struct Adam {};

namespace detail {

// Shared by Adam and AdamW. Not a base class: with one, g++ warns of every designated initialiser.
inline std::string adam_moment_name(std::size_t m) {
  return m == 0 ? "exp_avg" : m == 1 ? "exp_avg_sq" : "max_exp_avg_sq";
}

template <class Policy>
void check_adam(Policy const& policy, char const* name) {
  require_learning_rate(policy.lr, name);
  require_fraction("beta1", policy.beta1, name);
  require_fraction("beta2", policy.beta2, name);
  require_at_least_zero("eps", policy.eps, name);
  require_at_least_zero("weight_decay", policy.weight_decay, name);
}

/// `kernel` is at::_fused_adam_ or at::_fused_adamw_.
template <class Policy, class Rate, class Kernel>
void apply_adam(Policy const& policy, FusedStep<Rate> const& step, Kernel&& kernel) {
  at::TensorList const largest =
      policy.amsgrad ? at::TensorList(step.lists.moments[2]) : at::TensorList();
  kernel(step.lists.parameters, step.gradients, step.lists.moments[0], step.lists.moments[1],
         largest, step.lists.steps, step.lr, policy.beta1, policy.beta2, step.weight_decay,
         policy.eps, policy.amsgrad, policy.maximize, /*grad_scale=*/std::nullopt, step.overflow);
}

}  // namespace detail

/// Adam with decoupled weight decay.
///
/// Lever   hours per run: one kernel per step, while torch::optim dispatches a dozen per tensor.
/// Cost    one fused ATen kernel per group's settings, device and dtype; no host sync.
/// State   two moments (three with amsgrad) of each parameter's shape, and step counts; saved under
///         the parameters' names.
/// Errors  SettingsError for settings out of range, a group that selects nothing, two groups that
///         give a parameter two values, a sparse gradient.
/// Source  Loshchilov and Hutter, "Decoupled weight decay regularization" (2019);
///         torch.optim.AdamW(fused=True).
template <>
struct Optimize<AdamW> {
  using kind = kinds::optimizer;
  using listens = list<on::fit_begin, on::update>;

  static constexpr About about{Term::hours_per_run,
                               "one fused kernel per parameter group and step"};
  static constexpr bool capturable = true;
  static constexpr bool works_on_parts = true;

  double lr = 1e-3;            ///< learning rate, multiplied by the schedule's factor
  double beta1 = 0.9;          ///< decay of the first moment
  double beta2 = 0.999;        ///< decay of the second moment
  double eps = 1e-8;           ///< added to the root of the second moment
  double weight_decay = 1e-2;  ///< fraction of the weight subtracted per unit of learning rate
  bool amsgrad = false;        ///< divide by the largest second moment so far
  bool maximize = false;       ///< ascend
  std::vector<ParameterGroup> groups{};

  using State = detail::FusedState<Optimize>;

  static bool has_first_step() { return false; }
  std::size_t moment_count() const { return amsgrad ? 3 : 2; }
  static std::string moment_name(std::size_t m) { return detail::adam_moment_name(m); }
  static double initial(std::size_t) { return 0.0; }
  void check() const { detail::check_adam(*this, "Optimize<AdamW>"); }
  template <class Rate>
  void apply(detail::FusedStep<Rate> const& step) const {
    detail::apply_adam(*this, step, [](auto&&... arguments) {
      at::_fused_adamw_(std::forward<decltype(arguments)>(arguments)...);
    });
  }
};

/// Adam, with weight decay added to the gradient.
///
/// Lever   hours per run: one kernel per step, while torch::optim dispatches a dozen per tensor.
/// Cost    one fused ATen kernel per group's settings, device and dtype; no host sync.
/// State   two moments (three with amsgrad) of each parameter's shape, and step counts; saved under
///         the parameters' names.
/// Errors  SettingsError for settings out of range, a group that selects nothing, two groups that
///         give a parameter two values, a sparse gradient.
/// Source  Kingma and Ba, "Adam: a method for stochastic optimization" (2015), amsgrad of Reddi et
///         al. (2018); torch.optim.Adam(fused=True).
template <>
struct Optimize<Adam> {
  using kind = kinds::optimizer;
  using listens = list<on::fit_begin, on::update>;

  static constexpr About about{Term::hours_per_run,
                               "one fused kernel per parameter group and step"};
  static constexpr bool capturable = true;
  static constexpr bool works_on_parts = true;

  double lr = 1e-3;           ///< learning rate, multiplied by the schedule's factor
  double beta1 = 0.9;         ///< decay of the first moment
  double beta2 = 0.999;       ///< decay of the second moment
  double eps = 1e-8;          ///< added to the root of the second moment
  double weight_decay = 0.0;  ///< multiplied by the weight and added to the gradient
  bool amsgrad = false;       ///< divide by the largest second moment so far
  bool maximize = false;      ///< ascend
  std::vector<ParameterGroup> groups{};

  using State = detail::FusedState<Optimize>;

  static bool has_first_step() { return false; }
  std::size_t moment_count() const { return amsgrad ? 3 : 2; }
  static std::string moment_name(std::size_t m) { return detail::adam_moment_name(m); }
  static double initial(std::size_t) { return 0.0; }
  void check() const { detail::check_adam(*this, "Optimize<Adam>"); }
  template <class Rate>
  void apply(detail::FusedStep<Rate> const& step) const {
    detail::apply_adam(*this, step, [](auto&&... arguments) {
      at::_fused_adam_(std::forward<decltype(arguments)>(arguments)...);
    });
  }
};

}  // namespace frugal
