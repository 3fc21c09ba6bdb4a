// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Which tensors of a run must be finite to be kept, saved or resumed: the module's parameters and
/// buffers, and the tensors of the optimizer and of averages, in which a number can be infinite for
/// ever while the weights are finite. The state of Optimize<Any> is a blob of bytes, and is not
/// covered.
class FiniteState {
 public:
  /// Call it when the fit begins, before a resume. A constant that is not finite from the start,
  /// such as a mask of -infinity, is left out; a parameter that is trained never is. So are tensors of
  /// other processes that are not trained: their values are not known here.
  void begin(torch::nn::Module& module, TensorPlaces const& places = {});

  /// Whether a parameter or buffer must be finite.
  bool covers_weight(std::string const& name) const { return !constants_.contains(name); }
  /// Whether a tensor of the run's state must be finite, by its path.
  static bool covers_state(std::string_view path);

  /// The name of the module's first tensor that must be finite and is not. Waits once for each
  /// device.
  std::optional<std::string> first_bad_weight(torch::nn::Module& module) const;

  /// The name of the first tensor that must be finite and is not.
  std::optional<std::string> first_bad(StateDict const& module, StateDict const& run) const;

 private:
  std::set<std::string> constants_;  ///< that are not finite
};

/// `position` of the window: that of the window which made them so, or `elsewhere`.
NonFiniteWeightsError non_finite_weights(std::string const& tensor, LossError::Window const& window,
                                         std::uint64_t step);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/finite_state.ipp>
#endif
