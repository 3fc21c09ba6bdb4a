// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/optimize/fused_bucket.hpp>
#include <frugal/policy/optimize/groups.hpp>

namespace frugal::detail {

/// SettingsError for a parameter with gaps: the kernels would overwrite what lies between its
/// elements.
FRUGAL_INLINE void require_dense(std::string const& name, at::Tensor const& parameter) {
  if (parameter.layout() == at::kStrided && parameter.is_non_overlapping_and_dense()) return;
  throw SettingsError({.what = "parameter '" + name + "' is not contiguous in memory",
                       .where = "Optimize",
                       .why = "a fused kernel reads a parameter's memory from end to end",
                       .fix = "Register a copy: parameter.contiguous(), or clone()."});
}

struct FusedRates {
  double lr;
  double weight_decay;
};

/// The parameters, in the order in which each bucket has its first; `usual` is for those to which no
/// group gives a rate or decay of their own.
FRUGAL_INLINE std::vector<FusedBucket> buckets_of(Parameters const& parameters,
                                                  std::vector<ParameterGroup> const& groups,
                                                  FusedRates const& usual, std::size_t moments) {
  std::vector<GroupSettings> const settings = group_settings(groups, parameters);
  std::vector<FusedBucket> buckets;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor const& parameter = parameters.tensors[i];
    require_dense(parameters.names[i], parameter);
    double const rate = settings[i].lr.value_or(usual.lr);
    double const decay = settings[i].weight_decay.value_or(usual.weight_decay);
    auto const takes = [&](FusedBucket const& each) { return each.takes(rate, decay, parameter); };
    auto bucket = std::find_if(buckets.begin(), buckets.end(), takes);
    if (bucket == buckets.end()) {
      buckets.emplace_back(rate, decay, moments);
      bucket = std::prev(buckets.end());
    }
    bucket->add(parameters.names[i], parameter);
  }
  return buckets;
}

/// The State of every fused optimizer. `Rule` is the policy's value: it validates its settings,
/// names and initialises its moments, and calls its kernel.
template <class Rule, class Context>
class FusedState {
 public:
  explicit FusedState(Rule const& rule) : rule_(rule) {}

  void on_fit_begin(FitBegin<Context>& phase) {
    rule_.check();
    buckets_ =
        buckets_of(phase.parameters(), rule_.groups,
                   {.lr = rule_.lr, .weight_decay = rule_.weight_decay}, rule_.moment_count());
    if (!buckets_.empty()) phase.report_learning_rate(buckets_.front().rate());
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
  Rule rule_;
  std::vector<FusedBucket> buckets_;
};

}  // namespace frugal::detail
