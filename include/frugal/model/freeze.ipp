// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/freeze.hpp>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/inline.hpp>

#include <string>
#include <vector>

namespace frugal {

FRUGAL_INLINE void freeze(torch::nn::Module& module, NamePatterns const& patterns) {
  detail::register_members(module);
  std::vector<std::string> names;
  for (auto const& item : module.named_parameters()) names.push_back(item.key());
  patterns.require_in(names, "Freeze", "parameters");
  for (auto const& item : module.named_parameters()) {
    if (item.value().defined() && patterns.matches(item.key())) detail::keep_fixed(item.value());
  }
  detail::fix_statistics(module, [&](std::string const& name) { return patterns.matches(name); });
}

}  // namespace frugal
