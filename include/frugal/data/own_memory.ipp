// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/own_memory.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE bool shares_memory(at::Tensor const& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return false;
  return tensor.use_count() > 1 || tensor.storage().use_count() > 1 ||
         tensor.storage().allocator() == nullptr;
}

}  // namespace frugal::detail
