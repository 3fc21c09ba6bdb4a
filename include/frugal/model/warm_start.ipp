// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/warm_start.hpp>

#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/inline.hpp>

#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE WarmStarted::WarmStarted(LoadedWeights weights, torch::nn::Module& module)
    : weights_(std::move(weights)) {
  visit_all_tensors(module, [&](std::string const&, at::Tensor const& tensor) {
    into_.emplace(tensor.unsafeGetTensorImpl(), Weak(tensor.getIntrusivePtr()));
  });
}

FRUGAL_INLINE bool WarmStarted::is_in(torch::nn::Module& module) const {
  bool found = false;
  visit_all_tensors(module, [&](std::string const&, at::Tensor const& tensor) {
    found |= into_.contains(tensor.unsafeGetTensorImpl());
  });
  return found;
}

FRUGAL_INLINE bool has_checkpoint(std::filesystem::path const& run_dir) {
  std::error_code ignored;
  return !run_dir.empty() && std::filesystem::is_directory(run_dir, ignored) &&
         !RunDirectory(run_dir, Access::read).list().whole.empty();
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void WarmStart::adapt(torch::nn::Module& module) const {
  if (is_in(module)) return;
  if (from.empty()) {
    throw SettingsError({.what = "WarmStart has no weights",
                         .where = "WarmStart::from",
                         .why = "it is empty",
                         .fix = "Give a file or a folder of weights, or remove WarmStart."});
  }
  loaded.set({load_weights(module, from, rules), module});
}

}  // namespace frugal
