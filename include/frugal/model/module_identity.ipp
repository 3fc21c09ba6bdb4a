// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/module_identity.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/lora/adapter.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace frugal {

FRUGAL_INLINE std::string module_identity(torch::nn::Module const& module) {
  detail::TensorHash hash;
  std::size_t tensors = 0;
  auto const add = [&](auto const& item) {
    hash.add(item.key());
    hash.add(item.value());
    ++tensors;
  };
  for (auto const& item : module.named_parameters()) add(item);
  for (auto const& item : module.named_buffers()) add(item);
  for (detail::FoundAdapter const& each : detail::find_adapters(module)) {
    hash.add(each.layer.name + "/" + each.adapter->settings().name);
    hash.add(std::to_string(std::bit_cast<std::uint64_t>(each.adapter->scale())));
    hash.add(std::string(each.adapter->is_merged() ? "merged" : "apart") +
             (each.adapter->active ? ", in use" : ", not in use"));
  }
  return std::to_string(tensors) + " tensors, hash " + hex_of(hash.digest());
}

}  // namespace frugal
