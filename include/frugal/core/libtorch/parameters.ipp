// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/parameters.hpp>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/inline.hpp>

#include <unordered_map>

namespace frugal {

FRUGAL_INLINE Parameters Parameters::of(torch::nn::Module const& module) {
  Parameters all;
  std::unordered_map<at::TensorImpl const*, std::size_t> seen;
  for (auto const& item : module.named_parameters()) {
    if (!item.value().defined() || is_fixed(item.value())) continue;
    // Tied weights appear under two names and must be updated once.
    auto const [known, is_new] =
        seen.emplace(item.value().unsafeGetTensorImpl(), all.tensors.size());
    if (!is_new) {
      all.more_names.emplace(known->second, item.key());
      continue;
    }
    all.names.push_back(item.key());
    all.tensors.push_back(item.value());
  }
  return all;
}

FRUGAL_INLINE void GradientList::collect(Parameters const& parameters) {
  tensors_.clear();
  for (at::Tensor const& parameter : parameters.tensors) {
    at::Tensor const& gradient = parameter.grad();
    if (gradient.defined()) tensors_.push_back(gradient);
  }
  complete_ = tensors_.size() == parameters.size();
}

}  // namespace frugal
