// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/skipped_windows.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE bool FlagQueue::next(at::Tensor const& flag) {
  if (flag.is_cpu() && lag_ == 0) return host_scalar(flag) != 0;
  if (flag.is_cpu()) {
    waiting_.push_back({.known = host_scalar(flag) != 0});
  } else {
    waiting_.push_back({.slot = begin_reading(flag)});
  }
  if (waiting_.size() <= lag_) return false;
  bool const set = value(waiting_.front());
  waiting_.pop_front();
  return set;
}

FRUGAL_INLINE std::size_t FlagQueue::begin_reading(at::Tensor const& flag) {
  if (slots_.size() <= lag_) {
    turn_ = slots_.size();
    slots_.push_back({at::empty({}, flag.options().device(at::kCPU).pinned_memory(true)),
                      c10::Event(flag.device().type())});
  } else {
    turn_ = (turn_ + 1) % slots_.size();
  }
  Slot& slot = slots_[turn_];
  slot.host.copy_(flag, /*non_blocking=*/true);
  c10::impl::VirtualGuardImpl const device(flag.device().type());
  slot.copied.record(device.getStream(flag.device()));
  return turn_;
}

FRUGAL_INLINE bool FlagQueue::value(Waiting const& waiting) const {
  if (waiting.known) return *waiting.known;
  Slot const& slot = slots_[waiting.slot];
  slot.copied.synchronize();
  return host_scalar(slot.host) != 0;
}

}  // namespace frugal::detail
