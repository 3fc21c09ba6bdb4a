// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/side_stream.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor Room::take(at::Tensor const& like, c10::Device device) {
  if (memory_.size() <= taken_) memory_.resize(taken_ + 1);
  at::Tensor& room = memory_[taken_++];
  bool const fits =
      room.defined() && room.scalar_type() == like.scalar_type() && room.numel() >= like.numel();
  auto const options = like.options().device(device).pinned_memory(false);
  // The memory belongs to the side stream's pool, and returns to it.
  if (!fits) room = at::empty({like.numel()}, options);
  return at::empty({0}, options).set_(room.storage(), 0, like.sizes(), like.strides());
}

FRUGAL_INLINE void Room::look_whether_free(c10::Stream const& computes) {
  if (!is_out_ || !is_ours_alone()) return;
  used_.record(computes);
  is_out_ = false;
  is_used_ = true;
}

FRUGAL_INLINE void Room::empty_it(c10::impl::VirtualGuardImpl const& guard,
                                  c10::Stream const& computes, c10::Stream const& copies) {
  look_whether_free(computes);
  if (is_out_) {
    // The batch is still held. The allocator knows only the copying stream; recording the other
    // makes it wait for that stream before it reuses the memory.
    for (at::Tensor const& each : memory_) {
      guard.recordDataPtrOnStream(each.storage().data_ptr(), computes);
    }
    memory_.clear();
  }
  if (is_used_) used_.block(copies);
  is_out_ = is_used_ = false;
  taken_ = 0;
}

FRUGAL_INLINE bool Room::is_ours_alone() const {
  for (at::Tensor const& each : memory_) {
    if (each.storage().use_count() > 1) return false;
  }
  return true;
}

FRUGAL_INLINE void SideStream::finish(std::size_t turn) {
  staging_.let_wait(computes(), turn);
  rooms_[turn].hand_out();
}

}  // namespace frugal::detail
