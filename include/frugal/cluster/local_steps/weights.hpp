// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The trained parameters twice: the weights that all processes share, which are those of the last
/// outer step, and the own ones of this process. The module has one of the two. They change places
/// without a copy.
class LocalWeights {
 public:
  /// Before the first window; the module has the shared weights.
  void begin(Parameters const& parameters) {
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

  std::vector<std::string> const& names() const { return names_; }
  /// Whether the module has the own weights.
  bool has_own() const { return has_own_; }

  /// The module gets the own weights. `follows`: which are the shared ones so far.
  void put_own(bool follows) {
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
  /// The module gets the shared weights.
  void put_shared() {
    if (!has_own_) return;
    require_unmoved();
    for (std::size_t i = 0; i < trained_.size(); ++i) trained_[i].set_data(shared_[i]);
    has_own_ = false;
  }

  /// Those that the module has: of the trained parameters, without a graph.
  std::vector<at::Tensor> in_module() const {
    std::vector<at::Tensor> all;
    for (at::Tensor const& each : trained_) all.push_back(each.detach());
    return all;
  }
  /// The own weights, uninitialised before there are some.
  std::vector<at::Tensor>& own() {
    allocate();
    return own_;
  }
  /// Forgets the own weights, after a fit.
  void release() { own_.clear(), shared_.clear(); }

  /// ModuleError unless these are the parameters that the run began with.
  void require_same(Parameters const& parameters) const {
    std::size_t at = 0;
    for (at::Tensor const& each : parameters.tensors) {
      if (!each.requires_grad()) continue;
      if (at == trained_.size() || !each.is_same(trained_[at])) refuse_changed();
      ++at;
    }
    if (at != trained_.size()) refuse_changed();
  }

 private:
  void allocate() {
    if (!own_.empty()) return;
    for (at::Tensor const& each : trained_) {
      own_.push_back(at::empty_like(each, at::TensorOptions().requires_grad(false),
                                    at::MemoryFormat::Preserve));
    }
  }

  void require_unmoved() const {
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      if (trained_[i].const_data_ptr() != own_[i].const_data_ptr()) refuse_changed();
    }
  }

  [[noreturn]] static void refuse_changed() {
    throw ModuleError(
        {.what = "a step trains other parameters than the run began with, or they have moved",
         .where = "Replicate<LocalSteps>",
         .why = "requires_grad or the memory of a parameter (set_data, to) has changed, and each "
                "process has weights of its own for those of the beginning",
         .fix = "Do that before fit."});
  }

  std::vector<std::string> names_;
  std::vector<at::Tensor> trained_;  ///< the module's
  std::vector<at::Tensor> shared_;   ///< while the module has the own ones
  std::vector<at::Tensor> own_;
  bool has_own_ = false;
};

}  // namespace frugal::detail
