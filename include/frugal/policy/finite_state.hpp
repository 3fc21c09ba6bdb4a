// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_places.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>

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
  FRUGAL_INLINE void begin(torch::nn::Module& module, TensorPlaces const& places = {}) {
    constants_.clear();
    for (auto const& [name, tensor] : places.tensors) {
      if (tensor.place == PlacedTensor::Place::elsewhere && !tensor.trained)
        constants_.insert(name);
    }
    visit_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
      if (!tensor.requires_grad() && first_non_finite({tensor})) constants_.insert(name);
    });
  }

  /// Whether a parameter or buffer must be finite.
  bool covers_weight(std::string const& name) const { return !constants_.contains(name); }
  /// Whether a tensor of the run's state must be finite, by its path.
  FRUGAL_INLINE static bool covers_state(std::string_view path) {
    std::string_view constexpr scope = "policies/";
    if (!path.starts_with(scope)) return false;
    path.remove_prefix(scope.size());
    std::string_view const kind = path.substr(0, path.find('/'));
    return kind.size() < path.size() &&
           (kind == kinds::optimizer::name || kind == kinds::average::name);
  }

  /// The name of the module's first tensor that must be finite and is not. Waits once for each
  /// device.
  FRUGAL_INLINE std::optional<std::string> first_bad_weight(torch::nn::Module& module) const {
    std::vector<std::string> names;
    std::vector<at::Tensor> tensors;
    visit_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
      if (!covers_weight(name)) return;
      names.push_back(name);
      tensors.push_back(tensor.detach());
    });
    auto const first = first_non_finite(tensors);
    return first ? std::optional(names[*first]) : std::nullopt;
  }

  /// The name of the first tensor that must be finite and is not.
  FRUGAL_INLINE std::optional<std::string> first_bad(StateDict const& module,
                                                     StateDict const& run) const {
    std::vector<std::string> names;
    std::vector<at::Tensor> tensors;
    auto const add = [&](std::string const& name, at::Tensor const& tensor) {
      names.push_back(name);
      tensors.push_back(tensor);
    };
    for (auto const& [name, tensor] : module.tensors) {
      if (covers_weight(name)) add(name, tensor);
    }
    for (auto const& [path, tensor] : run.tensors) {
      if (covers_state(path)) add(path, tensor);
    }
    auto const first = first_non_finite(tensors);
    return first ? std::optional(names[*first]) : std::nullopt;
  }

 private:
  std::set<std::string> constants_;  ///< that are not finite
};

/// `position` of the window: that of the window which made them so, or `elsewhere`.
FRUGAL_INLINE NonFiniteWeightsError non_finite_weights(std::string const& tensor,
                                                       LossError::Window const& window,
                                                       std::uint64_t step) {
  return NonFiniteWeightsError(
      {.what = "the weights are not finite",
       .where = "tensor '" + tensor + "', step " + std::to_string(step),
       .why = "a gradient was NaN or infinite, or an update overflowed",
       .fix = "Checkpoints before it are whole. Add SkipNonFinite, which skips such windows, or "
              "Rollback<>, which goes back, or lower the learning rate. Register constants, such "
              "as masks of -infinity, as buffers."},
      window, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace frugal::detail
