// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/optimize/any.hpp>
#include <frugal/policy/optimize/fused_bucket.hpp>
#include <frugal/policy/optimize/groups.hpp>
#include <frugal/policy/optimize/nothing.hpp>

#include <ATen/ATen.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// SettingsError for a parameter with gaps: the kernels would overwrite what lies between its
/// elements.
void require_dense(std::string const& name, at::Tensor const& parameter);

/// Which parameters one kernel call updates: those of equal settings, on one device, of one dtype.
/// In the order in which each list has its first.
std::vector<std::vector<std::size_t>> buckets_of(Parameters const& parameters,
                                                 std::vector<ParameterSettings> const& settings);

/// The settings of a policy that groups may change.
template <class Rule>
ParameterSettings settings_of(Rule const& rule) {
  ParameterSettings usual{.lr = rule.lr, .weight_decay = rule.weight_decay};
  if constexpr (requires { rule.beta1; }) {
    usual.beta1 = rule.beta1;
    usual.beta2 = rule.beta2;
  }
  if constexpr (requires { rule.momentum; }) usual.momentum = rule.momentum;
  return usual;
}

/// The policy with the settings of some parameters in place of its own.
template <class Rule>
Rule with_settings(Rule rule, ParameterSettings const& own) {
  rule.groups.clear();
  rule.lr = *own.lr;
  rule.weight_decay = *own.weight_decay;
  if constexpr (requires { rule.beta1; }) {
    rule.beta1 = *own.beta1;
    rule.beta2 = *own.beta2;
  }
  if constexpr (requires { rule.momentum; }) rule.momentum = *own.momentum;
  rule.check();
  return rule;
}

/// The parameters that an optimizer updates: all of the run, or one side of a Partition.
struct OwnedParameters {
  Parameters const& all;
  ParameterParts const* parts;  ///< null: the parameters are updated whole
  TensorPlaces const& places;
  std::string label{};         ///< before the names of the optimizer's settings: "first."
  std::size_t first_rate = 0;  ///< place of its rates among the reported ones
};

/// Updates the weights, unless the window has overflowed. All factors are computed before the first kernel:
/// one may be refused.
template <class State>
void update_fused(State& state, Update& phase) {
  at::Tensor const& overflow = phase.overflow();
  bool const captures = phase.facts().captures_steps;
  // In host memory the flag is a plain number, which no kernel needs to read.
  if (!captures && overflow.defined() && overflow.is_cpu() && host_scalar(overflow) != 0) return;
  // The update is not part of the graph; a guard is cheaper than detaching every tensor.
  at::NoGradGuard const no_gradients;
  state.step(phase, state.group_factors(phase));
  if (!captures) phase.collect_parts();
}

/// The State of every fused optimizer. `Rule` is the policy's value: it validates its settings,
/// names and initialises its moments, and calls its kernel.
template <class Rule>
class FusedState {
 public:
  explicit FusedState(Rule const& rule) : rule_(rule) {}

  void on_fit_begin(FitBegin& phase) {
    phase.report_learning_rates(begin(phase, {phase.parameters(), phase.parts(), phase.places()}));
  }
  void on_update(Update& phase) { update_fused(*this, phase); }

  /// Takes its parameters, and returns their rates.
  std::vector<GroupRate> begin(FitBegin& phase, OwnedParameters const& own) {
    rule_.check();
    GroupSettings groups =
        resolve_groups(rule_.groups, own.all, settings_of(rule_), own.places, own.label);
    parts_.clear();
    // A parameter of which this process has a part may be without values.
    Parameters const& held = own.parts == nullptr ? own.all : own.parts->parameters;
    for (auto const& bucket : buckets_of(held, groups.parameters)) {
      ParameterSettings const& settings = groups.parameters[bucket.front()];
      Rule const rule = with_settings(rule_, settings);
      Part part{rule, FusedBucket(rule.lr, rule.weight_decay, rule.moment_count()), settings.rate};
      for (std::size_t const i : bucket) {
        if (own.parts == nullptr) {
          part.bucket.add(held.names[i], held.tensors[i]);
        } else {
          part.bucket.add(held.names[i], held.tensors[i], own.parts->of[i]);
        }
      }
      parts_.push_back(std::move(part));
    }
    compare_in_processes(phase, groups.distinct, own.label);
    schedules_ = RateSchedules(rule_.groups, groups, phase.horizon());
    for (std::string const& outlook : schedules_.outlooks()) phase.warn(outlook);
    if (phase.facts().captures_steps) schedules_.require_none();
    first_rate_ = own.first_rate;
    return std::move(groups.rates);
  }

  /// What multiplies each of its rates in this step; empty: nothing does.
  std::vector<double> group_factors(Update& phase) const {
    if (!schedules_) [[likely]]
      return {};
    std::vector<double> factors = schedules_.factors(phase.counters().step);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      phase.report_group_factor(first_rate_ + i, factors[i]);
    }
    return factors;
  }

  void step(Update& phase, std::vector<double> const& factors) {
    at::Tensor const& overflow = phase.overflow();
    if (phase.facts().captures_steps) {
      bool moved = false;
      for (Part& each : parts_) {
        at::Tensor const& factor = phase.learning_rate_tensor();
        each.bucket.step(each.rule, phase.gradients(), factor, overflow);
        if (each.bucket.moved()) moved = true;
      }
      if (moved) phase.state_has_moved();
      return;
    }
    bool const on_host = overflow.defined() && overflow.is_cpu();
    for (Part& each : parts_) {
      double const own = factors.empty() ? 1.0 : factors[each.rate];
      each.bucket.step(each.rule, phase.gradients(), phase.learning_rate_factor() * own,
                       on_host ? at::Tensor() : overflow);
    }
  }

  template <class Archive>
  void persist(Archive& archive) {
    for (Part& each : parts_) each.bucket.persist(each.rule, archive);
  }

 private:
  void compare_in_processes(FitBegin& phase, std::vector<ParameterSettings> const& settings,
                            std::string const& label) const {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      Rule const rule = with_settings(rule_, settings[i]);
      auto const compare = [&](char const* name, double value, bool on_resume = true) {
        phase.compare_in_processes(
            "the optimizer's " + label + name + ", group " + std::to_string(i), value, on_resume);
      };
      compare("lr", rule.lr, /*on_resume=*/false);  // all learning rates are compared there
      compare("weight_decay", rule.weight_decay);
      if constexpr (requires { rule.beta1; })
        compare("beta1", rule.beta1), compare("beta2", rule.beta2);
      if constexpr (requires { rule.momentum; }) compare("momentum", rule.momentum);
      if constexpr (requires { rule.dampening; }) compare("dampening", rule.dampening);
      if constexpr (requires { rule.nesterov; }) compare("nesterov", rule.nesterov);
      if constexpr (requires { rule.eps; }) compare("eps", rule.eps);
      if constexpr (requires { rule.lr_decay; }) compare("lr_decay", rule.lr_decay);
      if constexpr (requires { rule.amsgrad; }) compare("amsgrad", rule.amsgrad);
      if constexpr (requires { rule.maximize; }) compare("maximize", rule.maximize);
    }
  }

  /// Parameters of equal settings.
  struct Part {
    Rule rule;  ///< with these settings
    FusedBucket bucket;
    std::size_t rate;  ///< which of the reported ones is theirs
  };

  Rule rule_;
  std::vector<Part> parts_;
  RateSchedules schedules_;
  std::size_t first_rate_ = 0;
};

}  // namespace frugal::detail

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
  using properties = list<property::capturable, property::works_on_parts>;

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
  using properties = list<property::capturable, property::works_on_parts>;

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
  using properties = list<property::capturable, property::works_on_parts>;

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
  using properties = list<property::capturable, property::works_on_parts>;

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

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize.ipp>
#endif
