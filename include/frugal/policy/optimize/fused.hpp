// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <frugal/core/run/phases.hpp>
#include <frugal/policy/optimize/fused_bucket.hpp>
#include <frugal/policy/optimize/groups.hpp>

namespace frugal::detail {

/// The State of every fused optimizer. `Rule` is the policy's value: it validates its settings,
/// names and initialises its moments, and calls its kernel.
template <class Rule, class Context>
class FusedState {
 public:
  explicit FusedState(Rule const& rule) : rule_(rule) {}

  void on_fit_begin(FitBegin<Context>& phase) {
    rule_.check();
    Parameters const& parameters = phase.parameters();
    auto const settings = group_settings(rule_.groups, parameters);
    using Key = std::tuple<double, double, std::string, c10::ScalarType>;
    std::map<Key, std::size_t> bucket_of;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor const& parameter = parameters.tensors[i];
      double const rate = settings[i].lr.value_or(rule_.lr);
      double const decay = settings[i].weight_decay.value_or(rule_.weight_decay);
      Key const key{rate, decay, parameter.device().str(), parameter.scalar_type()};
      auto const [entry, is_new] = bucket_of.try_emplace(key, buckets_.size());
      if (is_new) {
        buckets_.emplace_back(rate, decay, rule_.moment_count());
        if (buckets_.size() == 1) phase.report_learning_rate(rate);
      }
      require_dense(parameters.names[i], parameter);
      buckets_[entry->second].add(parameters.names[i], parameter);
    }
  }

  void on_update(Update<Context>& phase) {
    // The update is not part of the graph; a guard is cheaper than detaching every tensor.
    at::NoGradGuard const no_gradients;
    at::Tensor const& overflow = phase.overflow();
    if constexpr (captures_steps<typename Context::policies>) {
      bool moved = false;
      for (FusedBucket& each : buckets_) {
        at::Tensor const& factor = phase.learning_rate_tensor();
        each.step(rule_, phase.gradients(), factor, overflow);
        if (each.moved()) moved = true;
      }
      if (moved) phase.state_has_moved();
      return;
    }
    // In host memory the flag is a plain number, which no kernel needs to read.
    bool const on_host = overflow.defined() && overflow.is_cpu();
    if (on_host && host_scalar(overflow) != 0) return;
    for (FusedBucket& each : buckets_) {
      each.step(rule_, phase.gradients(), phase.learning_rate_factor(),
                on_host ? at::Tensor() : overflow);
    }
  }

  template <class Archive>
  void persist(Archive& archive) {
    for (FusedBucket& each : buckets_) each.persist(rule_, archive);
  }

 private:
  /// SettingsError for a parameter with gaps: the kernels would overwrite what lies between its
  /// elements.
  static void require_dense(std::string const& name, at::Tensor const& parameter) {
    if (parameter.layout() == at::kStrided && parameter.is_non_overlapping_and_dense()) return;
    throw SettingsError({.what = "parameter '" + name + "' is not contiguous in memory",
                         .where = "Optimize",
                         .why = "a fused kernel reads a parameter's memory from end to end",
                         .fix = "Register a copy: parameter.contiguous(), or clone()."});
  }

  Rule rule_;
  std::vector<FusedBucket> buckets_;
};

}  // namespace frugal::detail
