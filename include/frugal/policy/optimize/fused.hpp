// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/policy/optimize/fused_bucket.hpp>
#include <frugal/policy/optimize/group_settings.hpp>
#include <frugal/policy/optimize/rate_schedules.hpp>

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

/// The State of every fused optimizer. `Rule` is the policy's value: it validates its settings,
/// names and initialises its moments, and calls its kernel.
template <class Rule>
class FusedState {
 public:
  explicit FusedState(Rule const& rule) : rule_(rule) {}

  void on_fit_begin(FitBegin& phase) {
    rule_.check();
    Parameters const& parameters = phase.parameters();
    GroupSettings groups =
        resolve_groups(rule_.groups, parameters, settings_of(rule_), phase.places());
    parts_.clear();
    // A parameter of which this process has a part may be without values.
    Parameters const& held = phase.parts() == nullptr ? parameters : phase.parts()->parameters;
    for (auto const& bucket : buckets_of(held, groups.parameters)) {
      ParameterSettings const& own = groups.parameters[bucket.front()];
      Rule const rule = with_settings(rule_, own);
      Part part{rule, FusedBucket(rule.lr, rule.weight_decay, rule.moment_count()), own.rate};
      for (std::size_t const i : bucket) {
        if (phase.parts() == nullptr) {
          part.bucket.add(held.names[i], held.tensors[i]);
        } else {
          part.bucket.add(held.names[i], held.tensors[i], phase.parts()->of[i]);
        }
      }
      parts_.push_back(std::move(part));
    }
    compare_in_processes(phase, groups.distinct);
    schedules_ = RateSchedules(rule_.groups, groups, phase.horizon());
    for (std::string const& outlook : schedules_.outlooks()) phase.warn(outlook);
    if (phase.facts().captures_steps) schedules_.require_none();
    phase.report_learning_rates(std::move(groups.rates));
  }

  void on_update(Update& phase) {
    // The update is not part of the graph; a guard is cheaper than detaching every tensor.
    at::NoGradGuard const no_gradients;
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
    // In host memory the flag is a plain number, which no kernel needs to read.
    bool const on_host = overflow.defined() && overflow.is_cpu();
    if (on_host && host_scalar(overflow) != 0) return;
    if (schedules_) [[unlikely]] {
      update_on_schedules(phase, on_host ? at::Tensor() : overflow);
    } else {
      for (Part& each : parts_) {
        each.bucket.step(each.rule, phase.gradients(), phase.learning_rate_factor(),
                         on_host ? at::Tensor() : overflow);
      }
    }
    phase.collect_parts();
  }

  template <class Archive>
  void persist(Archive& archive) {
    for (Part& each : parts_) each.bucket.persist(each.rule, archive);
  }

 private:
  void compare_in_processes(FitBegin& phase, std::vector<ParameterSettings> const& settings) const {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      Rule const rule = with_settings(rule_, settings[i]);
      auto const compare = [&](char const* name, double value) {
        phase.compare_in_processes(
            "the optimizer's " + std::string(name) + ", group " + std::to_string(i), value);
      };
      compare("lr", rule.lr);
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

  void update_on_schedules(Update& phase, at::Tensor const& overflow) {
    // All of them before the first kernel: a factor may be refused.
    std::vector<double> const factors = schedules_.factors(phase.counters().step);
    for (std::size_t i = 0; i < factors.size(); ++i) phase.report_group_factor(i, factors[i]);
    for (Part& each : parts_) {
      each.bucket.step(each.rule, phase.gradients(),
                       phase.learning_rate_factor() * factors[each.rate], overflow);
    }
  }

  Rule rule_;
  std::vector<Part> parts_;
  RateSchedules schedules_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/fused.ipp>
#endif
