// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/offload.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void OffloadStream::begin() {
  std::scoped_lock const lock(mutex_);
  wait_for_departures(0);
  saved_.clear();
}

FRUGAL_INLINE std::shared_ptr<Offloaded> OffloadStream::take(at::Tensor const& elements) {
  std::scoped_lock const lock(mutex_);
  auto made = std::make_shared<Offloaded>();
  made->stream = shared_from_this();
  made->number = saved_.size();
  saved_.push_back(made);
  made->host = at::empty(elements.sizes(), elements.options().device(at::kCPU).pinned_memory(true));
  departing_.push_back({elements.storage(), c10::Event(device_.type())});
  copy(made->host, elements, departing_.back().copied);
  wait_for_departures(at_a_time);
  return made;
}

FRUGAL_INLINE at::Tensor OffloadStream::give_back(Offloaded& what, bool again) {
  // Destroyed after the lock: the last owner takes the lock to drop it.
  std::shared_ptr<Offloaded> before;
  std::scoped_lock const lock(mutex_);
  wait_for_departures(0);
  send_for(what);
  what.arrived->block(computes());
  at::Tensor back = what.back;
  if (!again) what.back.reset();
  if (what.number > 0 && what.number < saved_.size()) before = saved_[what.number - 1].lock();
  if (before) send_for(*before);
  return back;
}

FRUGAL_INLINE void OffloadStream::drop(Offloaded& what) {
  std::scoped_lock const lock(mutex_);
  what.arrived->block(computes());
  what.back.reset();
}

FRUGAL_INLINE void OffloadStream::copy(at::Tensor const& to, at::Tensor const& from,
                                       c10::Event& done) {
  ready_.record(computes());
  ready_.block(stream_);
  c10::StreamGuard const on_side(stream_);
  to.copy_(from, /*non_blocking=*/true);
  done.record(stream_);
}

FRUGAL_INLINE void OffloadStream::wait_for_departures(std::size_t but) {
  while (departing_.size() > but) {
    departing_.front().copied.block(computes());
    departing_.pop_front();
  }
}

FRUGAL_INLINE void OffloadStream::send_for(Offloaded& what) {
  if (what.back.defined()) return;
  what.back =
      at::empty(what.host.sizes(), what.host.options().device(device_).pinned_memory(false));
  if (!what.arrived) what.arrived.emplace(device_.type());
  copy(what.back, what.host, *what.arrived);
}

FRUGAL_INLINE bool ToHost::takes(at::Tensor const& tensor) {
  constexpr std::size_t least = std::size_t{256} << 10;  // bytes
  return tensor.is_floating_point() && (tensor.is_cpu() || tensor.nbytes() >= least);
}

FRUGAL_INLINE std::shared_ptr<ToHost::Packed> ToHost::pack(at::Tensor const& elements) const {
  if (stream_) return stream_->take(elements);
  auto made = std::make_shared<Packed>();
  made->host = at::empty(elements.sizes(), elements.options().device(at::kCPU)).copy_(elements);
  return made;
}

FRUGAL_INLINE at::Tensor ToHost::unpack(std::shared_ptr<Packed> const& packed,
                                        at::TensorOptions const& as) {
  if (!packed->stream) return packed->host.to(as.device());
  return packed->stream->give_back(*packed, packed.use_count() > 1);
}

}  // namespace frugal::detail
