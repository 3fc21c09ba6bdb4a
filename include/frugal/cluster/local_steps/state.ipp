// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/local_steps/state.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void LocalWeights::begin(Parameters const& parameters) {
  names_.clear(), trained_.clear(), shared_.clear(), own_.clear();
  has_own_ = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters.tensors[i].requires_grad()) continue;
    names_.push_back(parameters.names[i]);
    trained_.push_back(parameters.tensors[i]);
  }
  require_memory_of_their_own(trained_, "Replicate<LocalSteps>",
                              "each would get memory of its own, and be trained apart");
}

FRUGAL_INLINE void LocalWeights::put_own(bool follows) {
  if (has_own_) return;
  at::NoGradGuard const no_gradients;
  allocate();
  if (follows) {
    for (std::size_t i = 0; i < own_.size(); ++i) own_[i].copy_(trained_[i]);
  }
  shared_.clear();
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    shared_.push_back(trained_[i].detach());
    trained_[i].set_data(own_[i]);
  }
  has_own_ = true;
}

FRUGAL_INLINE void LocalWeights::require_same(Parameters const& parameters) const {
  std::size_t at = 0;
  for (at::Tensor const& each : parameters.tensors) {
    if (!each.requires_grad()) continue;
    if (at == trained_.size() || !each.is_same(trained_[at])) refuse_changed();
    ++at;
  }
  if (at != trained_.size()) refuse_changed();
}

FRUGAL_INLINE void LocalWeights::refuse_changed() {
  throw ModuleError(
      {.what = "a step trains other parameters than the run began with, or they have moved",
       .where = "Replicate<LocalSteps>",
       .why = "requires_grad or the memory of a parameter (set_data, to) has changed, and each "
              "process has weights of its own for those of the beginning",
       .fix = "Do that before fit."});
}

FRUGAL_INLINE std::vector<at::Tensor> LocalGradients::sum(std::vector<bool> const&) {
  std::vector<at::Tensor> sums = own_.sum({true});
  sums.resize(own_.has().size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!own_.has()[i]) sums[i] = at::Tensor();
  }
  return sums;
}

}  // namespace frugal::detail
