// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora/heads.hpp>

#include <frugal/base/name_pattern.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/lora/layers.hpp>

#include <algorithm>

namespace frugal::detail {

FRUGAL_INLINE TensorMap<std::string>& heads() {
  static auto* const made =
      new TensorMap<std::string>;  // never destroyed: threads may outlive main()
  return *made;
}

FRUGAL_INLINE bool is_head_of(at::Tensor const& tensor, std::string_view adapter) {
  std::string const owner = heads().find(tensor);
  return owner == adapter || (owner.empty() && tensor.requires_grad());
}

FRUGAL_INLINE std::vector<at::Tensor> parameters_named(
    torch::nn::Module const& module, std::vector<std::string_view> const& patterns) {
  std::vector<at::Tensor> found;
  for (auto const& item : module.named_parameters()) {
    auto const selects = [&](std::string_view pattern) {
      return matches_pattern(pattern, item.key());
    };
    auto const is_it = [&](at::Tensor const& each) { return each.is_same(item.value()); };
    if (!item.value().defined() || std::ranges::none_of(patterns, selects)) continue;
    if (std::ranges::none_of(found, is_it)) found.push_back(item.value());
  }
  return found;
}

FRUGAL_INLINE void require_own_heads(torch::nn::Module& module,
                                     std::vector<std::string_view> const& patterns,
                                     std::string_view adapter) {
  for (at::Tensor const& each : parameters_named(module, patterns)) {
    std::string const owner = heads().find(each);
    if (owner.empty() || owner == adapter || find_adapters(module, owner).empty()) continue;
    std::string name;
    for (auto const& item : module.named_parameters()) {
      if (name.empty() && item.value().is_same(each)) name = item.key();
    }
    throw SettingsError(
        {.what = "'" + name + "' is trained with the adapter '" + owner + "', and would be with '" +
                 std::string(adapter) + "' too",
         .where = "Lora",
         .why =
             "the module has one such parameter, and the second adapter would overwrite what the "
             "first has learned",
         .fix = "Keep the first with save_adapter and call remove_adapters, or give each adapter a "
                "module. Adapters that are trained together name it in one AlsoTrain."});
  }
}

}  // namespace frugal::detail
