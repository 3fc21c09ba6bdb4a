// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/auto_batch.hpp>

#include <frugal/inline.hpp>

#include <unordered_set>

namespace frugal::detail {

FRUGAL_INLINE ModuleBytes ModuleBytes::of(torch::nn::Module& module) {
  ModuleBytes bytes;
  std::unordered_set<c10::StorageImpl const*> seen;
  auto const add = [&](at::Tensor const& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    // Tied tensors, and parts of one buffer.
    if (!seen.insert(tensor.storage().unsafeGetStorageImpl()).second) return;
    auto const size = static_cast<std::int64_t>(tensor.storage().nbytes());
    bytes.all += size;
    if (!HostMeter::counts(tensor.storage().data_ptr())) bytes.not_counted += size;
  };
  for (at::Tensor const& tensor : module.parameters()) add(tensor);
  for (at::Tensor const& tensor : module.buffers()) add(tensor);
  return bytes;
}

}  // namespace frugal::detail
