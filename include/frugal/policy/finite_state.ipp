// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/finite_state.hpp>

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>

#include <limits>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE void FiniteState::begin(torch::nn::Module& module, TensorPlaces const& places) {
  constants_.clear();
  for (auto const& [name, tensor] : places.tensors) {
    if (tensor.place == PlacedTensor::Place::elsewhere && !tensor.trained) constants_.insert(name);
  }
  visit_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    if (!tensor.requires_grad() && first_non_finite({tensor})) constants_.insert(name);
  });
}

FRUGAL_INLINE bool FiniteState::covers_state(std::string_view path) {
  std::string_view constexpr scope = "policies/";
  if (!path.starts_with(scope)) return false;
  path.remove_prefix(scope.size());
  std::string_view const kind = path.substr(0, path.find('/'));
  return kind.size() < path.size() &&
         (kind == kinds::optimizer::name || kind == kinds::average::name);
}

FRUGAL_INLINE std::optional<std::string> FiniteState::first_bad_weight(
    torch::nn::Module& module) const {
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

FRUGAL_INLINE std::optional<std::string> FiniteState::first_bad(StateDict const& module,
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
