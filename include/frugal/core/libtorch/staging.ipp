// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/staging.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::size_t Staging::open() {
  now_ = std::exchange(next_, (next_ + 1) % slots_.size());
  Slot& slot = slots_[now_];
  slot.copied.synchronize();
  slot.borrowed.clear();
  slot.used = 0;
  return now_;
}

FRUGAL_INLINE at::Tensor Staging::locked(at::Tensor const& tensor) {
  Slot& slot = slots_[now_];
  if (tensor.is_pinned()) return slot.borrowed.emplace_back(tensor);
  if (slot.kept.size() <= slot.used) slot.kept.resize(slot.used + 1);
  at::Tensor& kept = slot.kept[slot.used++];
  bool const fits = kept.defined() && kept.scalar_type() == tensor.scalar_type() &&
                    kept.sizes() == tensor.sizes() && kept.strides() == tensor.strides();
  if (!fits) {
    kept =
        at::empty_like(tensor, at::TensorOptions().pinned_memory(true), at::MemoryFormat::Preserve);
  }
  return kept.copy_(tensor);
}

}  // namespace frugal::detail
